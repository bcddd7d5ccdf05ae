"""Real hosts over SSH, with systemd or with plain processes, given back as they were."""
