"""What each layer of a layout does for the same requests, from its disks to the front of its
gateway.
"""
