"""The verbs of the command, one file each. A verb imports heavy libraries only when it runs."""
