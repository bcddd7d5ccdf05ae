"""Real hosts over SSH: each with systemd, or with plain processes that are watched over, and given
back as it was.
"""
