"""Comparing runs: what they must have in common, and how far runs of the same thing differ."""
