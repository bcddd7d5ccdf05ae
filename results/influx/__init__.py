"""What of a run goes to an InfluxDB, live and afterwards."""
