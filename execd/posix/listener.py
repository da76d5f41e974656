"""The listening socket. Imports nothing of ours, so that it can be opened first."""

from __future__ import annotations

import socket
from typing import Final

BACKLOG: Final = 4096
"""Connections that wait to be accepted (the kernel may allow fewer, net.core.somaxconn)."""


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket; IPv6 if the address has a colon.

    Raises:
        OSError: the address is in use, not ours, or no address.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
