"""Charts of latencies that were measured request by request."""
