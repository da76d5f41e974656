"""The released clients and the released server, against a live daemon."""
