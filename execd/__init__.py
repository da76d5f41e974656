"""execd: the daemon that runs commands inside a sandbox, over HTTP."""

__version__ = "0.1.0"
