"""What clients ask of an object store today, each asked once: works, refused, wrong or unknown."""
