"""Tuning a layout: preparation, trials on one deployment, the winner and its confirmation."""
