"""Sends the points of a run to an InfluxDB, live and afterwards."""
