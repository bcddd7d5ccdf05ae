"""What is benchmarked: stores and the fronts before them, with their services and configuration.

`gateway.STORES` and `front.FRONTS` find them. Nothing is imported here, so that the small programs
of this room (such as `python -m weighbridge.gateways.await_answers`) start fast.
"""
