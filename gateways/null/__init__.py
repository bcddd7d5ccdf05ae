"""The null gateway: answers of known delay from memory, to calibrate drivers and to try the whole
pipeline.
"""
