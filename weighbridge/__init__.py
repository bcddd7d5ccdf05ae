"""The command and the conductor: verbs, plan, run loop, progress."""
