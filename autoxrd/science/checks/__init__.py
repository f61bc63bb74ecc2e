"""Physical and statistical checks of DESIGN section 8, on refined values; codes are stable strings."""

from autoxrd.science.checks.run import check_all

__all__ = ["check_all"]
