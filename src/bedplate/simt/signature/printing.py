"""`printf`: no instruction of PTX, so not in the table; what a call of `vprintf` becomes."""

from bedplate.simt.signature.base import forms

(PRINT,) = forms("printing", "vprintf : d:b32 = a:u64, b:u64")
