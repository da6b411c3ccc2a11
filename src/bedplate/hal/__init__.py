"""The hardware boundary: one C ABI, a loader, backends, and their conformance.

Others import `bedplate.hal.api` only.
"""
