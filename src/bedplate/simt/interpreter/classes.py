"""Importing this registers every instruction of the reference."""

from bedplate.simt.signature import classes

classes.register("bedplate.simt.interpreter")
