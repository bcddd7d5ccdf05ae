"""The results of a replayed study, with its published figures and conclusions."""
