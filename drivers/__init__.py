"""WHO loads: one process on a client host that takes orders and gives measurements (see
drivers.order).
"""
