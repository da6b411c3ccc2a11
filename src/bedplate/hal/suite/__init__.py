"""The conformance suite: what a backend claims is tested before it is believed.

Cases register themselves by capability (`registry`), run against a `Subject`
in a worker process (`worker`), and are driven and judged from outside
(`run`, `judge`), so that a case that crashes or hangs is one failed case.
"""
