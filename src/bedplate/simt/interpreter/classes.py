"""Importing this registers every instruction of the reference."""

from bedplate.simt.interpreter import comparison, floating, integer, memory, movement

__all__ = ["comparison", "floating", "integer", "memory", "movement"]
