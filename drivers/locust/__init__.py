"""The Locust driver (`python -m weighbridge.drivers.locust`): Locust runs the users."""
