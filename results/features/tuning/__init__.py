"""What the settings tried by a tuning do to each objective."""
