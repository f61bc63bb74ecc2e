"""Is the refined state physically and statistically possible? The checks of DESIGN section 8 under one name."""

from autoxrd.science.checks import check_all
from autoxrd.science.settings import Limits

__all__ = ["Limits", "check_all"]
