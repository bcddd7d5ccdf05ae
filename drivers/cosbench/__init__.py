"""The real COSBench 0.4.2 as a driver: it submits, follows and cancels workloads, and reads the
archive.
"""
