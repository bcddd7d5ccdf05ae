"""The highest rate within a latency bound: the search for it, and what it found."""
