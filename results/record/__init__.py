"""What a run folder holds: written as it is measured, readable after any kill."""
