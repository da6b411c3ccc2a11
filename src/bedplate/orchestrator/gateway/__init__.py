"""The gateway: keys, and the way from clients to engines."""
