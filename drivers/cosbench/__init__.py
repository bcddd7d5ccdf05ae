"""The real COSBench 0.4.2 as a driver: submits, follows and cancels workloads."""
