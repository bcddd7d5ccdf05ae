"""The verbs of the command, a file a group. A verb imports heavy libraries only when it runs."""
