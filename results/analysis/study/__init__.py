"""What a replayed study came to, beside its published figures and conclusions."""
