"""Tuning a layout that stands: preparing it, driving its trials, choosing a winner and confirming
it.
"""
