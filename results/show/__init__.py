"""How results are shown: tables with their files, and charts with their pictures."""
