"""What one step gave and whether it can be trusted, and the table of a run: its steps merged over
repeats.
"""
