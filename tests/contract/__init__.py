"""The daemon against its contract, both ways."""
