"""Load clients that no command reaches: they connect to a run by themselves, and prove a token.

The run's side is `listening` (its port), `clients` (each of them, as a driver sees it) and
`settings` (the options); the client's side is `joined_client`. Both speak `messages`, encrypted
with the keys that `token` makes.
"""
