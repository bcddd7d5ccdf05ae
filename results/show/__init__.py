"""How results are shown: tables as data, and the files and queries that are made of them."""
