"""2 to the power of x for both engines: the same f64 operations in the same order.

`ex2.approx.f32` may be 2 ulp off; this is the correctly rounded value but for a few
arguments in a million, and the same on every host. x = n + f with f in [-1/2, 1/2]; the
series of 2**f ends where the next term is below 1e-17; f32 is rounded once, at the end.
"""

from __future__ import annotations

from math import factorial, log

LIMIT = 200.0
"""Beyond it f32 is infinite or zero for sure."""
TERMS = tuple(log(2) ** k / factorial(k) for k in range(14))
"""Of the series, the constant first."""
