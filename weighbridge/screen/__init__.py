"""What a user sees on a terminal, during a run and afterwards."""
