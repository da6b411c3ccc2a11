"""What others may use of the standards."""

from bedplate.standards.check import Report, Verdict, check

__all__ = ["Report", "Verdict", "check"]
