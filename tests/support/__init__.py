"""A live daemon and an independent reader of its streams."""
