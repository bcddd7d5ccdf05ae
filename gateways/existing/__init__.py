"""Gateways that already run: only the buckets that a run makes are touched."""
