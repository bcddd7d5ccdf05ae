"""SeaweedFS."""
