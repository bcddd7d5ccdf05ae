"""Comparing runs with each other: what they must have in common, and what differs from run to run
anyway.
"""
