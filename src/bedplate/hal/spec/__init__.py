"""From `native/hal/spec.toml` to everything that is written in its image.

One file describes the ABI; the C headers, the loader's stubs, the cffi text,
the Rust file and the reference page are generated, committed, and checked to
be current (`python -m bedplate.hal.spec --check`). So a size or an offset is
computed in one place, and the C compiler confirms it.
"""
