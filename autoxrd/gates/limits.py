"""Which bound holds for a parameter? The last one that names it, found without trying all of them."""

from __future__ import annotations

from collections.abc import Iterable

from autoxrd.domain.action import Bound
from autoxrd.gates.selectors import Selector, covers, parse_parameter

__all__ = ["BoundIndex"]


class BoundIndex:
    """Bounds by the parameters that they concern.

    Args:
        bounds: in their order; a later one takes the place of an earlier one. One that does not parse concerns
            nothing (preflight reports it).
    """

    def __init__(self, bounds: Iterable[Bound]) -> None:
        self._exact: dict[str, tuple[int, Bound]] = {}
        self._sets: list[tuple[int, Selector, Bound]] = []
        for order, bound in enumerate(bounds):
            selector = parse_parameter(bound.selector)
            if selector is None:
                continue
            self._exact[bound.selector] = (order, bound)
            if selector.has_glob or not _is_single(selector):
                self._sets.append((order, selector, bound))

    def of(self, name: str) -> Bound | None:
        """Return the bound of a parameter, None where it has none."""
        best = self._exact.get(name)
        meaning = parse_parameter(name) if self._sets else None
        if meaning is not None:
            for order, selector, bound in reversed(self._sets):
                if best is not None and best[0] > order:
                    break
                if covers(selector, meaning):
                    return bound
        return best[1] if best is not None else None


def _is_single(selector: Selector) -> bool:
    """Return whether the selector is a parameter's full name, and so can cover no other."""
    if selector.histogram == "" and selector.kind in ("instrument", "sample", "profile", "absorption", "extinction"):
        return False
    if selector.kind == "atom":
        return selector.quantity != "position" or bool(selector.component)
    return selector.kind == "phase" and selector.quantity != "cell"
