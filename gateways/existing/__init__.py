"""Gateways that already run: nothing is stood up or taken away, and nothing is touched but the
buckets that a run makes.
"""
