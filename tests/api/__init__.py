"""The HTTP edge, without a socket."""
