"""Garage."""
