"""Programs of one file for a host's own Python 3.9, with nothing but its standard library."""
