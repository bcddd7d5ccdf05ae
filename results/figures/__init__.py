"""What one step gave and whether it can be trusted, and the table over all steps of a run."""
