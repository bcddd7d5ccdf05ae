"""The Locust driver: Locust runs the users; the native engine or the SDKs make the requests.

Run as `python -m weighbridge.drivers.locust`.
"""
