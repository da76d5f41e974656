"""HTTP edge: the only layer, with `execd.app`, that knows Starlette."""
