"""Importing this registers every lowering."""

from bedplate.simt.signature import classes

classes.register("bedplate.simt.lowering")
