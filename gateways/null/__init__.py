"""The null gateway: in-memory answers of known delay, to calibrate drivers and try the pipeline."""
