"""What answers one question about runs each: figures, sentences, tables, charts and slides."""
