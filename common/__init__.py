"""What every room stands on: the tree of errors, records, quantities with units, and YAML with
places.
"""
