"""How results are shown: tables, charts and slides as data, and the files made of them."""
