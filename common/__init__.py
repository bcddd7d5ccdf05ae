"""What every room uses: the tree of errors, records, quantities, YAML with file positions."""
