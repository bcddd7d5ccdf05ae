"""How results are shown: tables and charts as data, and the files and queries made of them."""
