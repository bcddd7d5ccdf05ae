"""How results are shown: charts, their theme, and their pictures."""
