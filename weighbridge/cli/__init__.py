"""The verbs of the command, a file each: options, and a plain function of values that does the
work.
"""
