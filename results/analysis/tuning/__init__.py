"""What the settings that a tuning tried do to each objective."""
