"""The real COSBench 0.4.2 as a driver: its workload written, submitted, followed and cancelled, its
archive read.
"""
