"""What leaves a run: its tables as data, typed and unrounded, and the formats that other programs
read.
"""
