"""Load by bonnie++ on a file of CephFS."""
