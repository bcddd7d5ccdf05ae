"""MinIO."""
