"""The Locust driver: Locust conducts the users, native workers or the SDKs make the requests.

Run as `python -m weighbridge.drivers.locust`.
"""
