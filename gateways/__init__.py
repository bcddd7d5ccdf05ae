"""WHO is measured: stores and the fronts before them, each with its services, configuration, users
and checks.

`gateway.STORES` and `front.FRONTS` name them. They are not imported here, so that the small
programs of this room (`python -m weighbridge.gateways.ports`, `python -m
weighbridge.gateways.verify`) start without the records they do not need.
"""
