"""The cases, one module per capability or group of them; found by `registry`."""
