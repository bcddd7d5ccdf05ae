"""Real hosts over SSH, their services units of systemd, given back as they were."""
