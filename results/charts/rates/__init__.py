"""Charts of steps at a rate."""
