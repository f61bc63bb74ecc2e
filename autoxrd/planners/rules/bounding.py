"""Within which limits does the expert free a quantity? One table, each limit with where it comes from."""

from __future__ import annotations

__all__ = ["QUANTITY_BOUNDS", "bounds_of"]

QUANTITY_BOUNDS: dict[str, tuple[float, float]] = {
    # In the parameter's own unit. Widths: 3 deg of 1/cos broadening is a 3 nm crystallite with Cu;
    # U: 0.1 angstrom^2 is B = 8, beyond any ordered inorganic solid; March-Dollase r: Dollase (1986),
    # doi:10.1107/S0021889886089458, extreme plates reach 0.3.
    "size": (0.0, 3.0),
    "strain": (0.0, 3.0),
    "size_gauss": (0.0, 3.0),
    "strain_gauss": (0.0, 3.0),
    "uiso": (0.0, 0.1),
    "occupancy": (0.0, 1.0),
    "preferred_orientation": (0.2, 3.0),
    # exp(-b / sin theta): 0.5 leaves a tenth of a line at 25 degrees
    "roughness": (0.0, 0.5),
}
# crystallites of 3 nm; 5 %, as above; mu R per angstrom: beyond 2 a cylinder lets nothing through worth a correction
_LEAST_CRYSTALLITE_ANGSTROM, _MOST_STRAIN, _MOST_ABSORPTION = 30.0, 0.05, 2.0


def bounds_of(selector: str, dif_c: float | None) -> tuple[float, float] | None:
    """Return the limits of what a selector frees, in its own unit; None where an action sets none.

    Over the time of flight the widths of size and strain are DIFC d^2 / L and DIFC d times the strain, FWHM.

    Args:
        selector: of one quantity.
        dif_c: DIFC of a time-of-flight bank, microseconds per angstrom; None for constant wavelength.
    """
    quantity = selector.rsplit(".", 1)[-1]
    if dif_c is not None:
        wide = {"size": dif_c / _LEAST_CRYSTALLITE_ANGSTROM, "strain": dif_c * _MOST_STRAIN}
        wide["absorption"] = _MOST_ABSORPTION
        if quantity in wide:
            return 0.0, wide[quantity]
    return QUANTITY_BOUNDS.get(quantity)
