"""One numpy reference per op: `reference(...)`, `bound(...)` and `cost(...)`.

Arguments are the op's readable tensors in schema order, then its attributes by
keyword. Values are decoded exactly and computed in fp64. Pure outputs hold the
rows in use only; tensors changed in place come back whole, in their own format.
`bound` takes the same arguments and `out_format`.
"""
