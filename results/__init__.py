"""WHAT came out: the measurement, the run folder, validity, the study's table, findings, charts and the report."""
