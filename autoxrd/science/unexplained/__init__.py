"""Is there intensity that no calculated reflection explains, and how much? The whole of DESIGN section 7's Q."""

from __future__ import annotations

from autoxrd.science.unexplained.ratio import Unexplained, find_unexplained

__all__ = ["Unexplained", "find_unexplained"]
