"""HTTP/1.1 as it is on the wire, with raw sockets."""
