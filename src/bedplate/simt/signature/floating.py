"""Floating-point arithmetic of f32, which has one NaN, and of f64, which hands payloads on."""

from bedplate.simt.signature.base import forms

WORDS = {"RND": "rn rz rm rp"}

FORMS = (
    *forms(
        "floating",
        """
        add rnd=$RND? ftz? sat? T=f32       : d = a, b
        sub rnd=$RND? ftz? sat? T=f32       : d = a, b
        mul rnd=$RND? ftz? sat? T=f32       : d = a, b
        fma rnd=$RND ftz? sat? T=f32        : d = a, b, c
        mad rnd=$RND ftz? sat? T=f32        : d = a, b, c
        div rnd=$RND ftz? T=f32             : d = a, b
        div approx ftz? T=f32               : d = a, b
        div full ftz? T=f32                 : d = a, b
        rcp rnd=$RND ftz? T=f32             : d = a
        rcp approx ftz? T=f32               : d = a
        sqrt rnd=$RND ftz? T=f32            : d = a
        sqrt approx ftz? T=f32              : d = a
        rsqrt approx ftz? T=f32             : d = a
        ex2 approx ftz? T=f32               : d = a
        min ftz? T=f32                      : d = a, b
        max ftz? T=f32                      : d = a, b
        abs ftz? T=f32                      : d = a
        neg ftz? T=f32                      : d = a
        """,
        lanewise=True,
        arithmetic=True,
        words=WORDS,
    ),
    *forms(
        "floating",
        """
        add rnd=$RND? T=f64                 : d = a, b
        sub rnd=$RND? T=f64                 : d = a, b
        mul rnd=$RND? T=f64                 : d = a, b
        fma rnd=$RND T=f64                  : d = a, b, c
        mad rnd=$RND T=f64                  : d = a, b, c
        div rnd=$RND T=f64                  : d = a, b
        rcp rnd=$RND T=f64                  : d = a
        rcp approx ftz T=f64                : d = a
        sqrt rnd=$RND T=f64                 : d = a
        rsqrt approx T=f64                  : d = a
        min T=f64                           : d = a, b
        max T=f64                           : d = a, b
        abs T=f64                           : d = a
        neg T=f64                           : d = a
        copysign T=f32|f64                  : d = a, b
        """,
        lanewise=True,
        words=WORDS,
    ),
)
