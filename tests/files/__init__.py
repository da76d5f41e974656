"""The file routes, with real files."""
