"""A file for each question about runs, with the tables that answer it."""
