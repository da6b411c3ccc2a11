"""Operators that carry their own proof: schema, reference, error bound, implementations.

Import from ``bedplate.kernels.api`` only.
"""
