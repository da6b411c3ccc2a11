"""The reference: one warp at a time, in numpy; the executable specification of the machine.

`base` says how an instruction class is added, `engine` runs kernels.
"""
