"""Versity S3 Gateway over a file system."""
