"""WHO loads: a process on a client host that takes commands and returns measurements."""
