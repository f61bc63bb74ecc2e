"""Is the model of the wrong kind? Signs that no further refinement of these phases would mend."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from autoxrd.domain.state import FitState
from autoxrd.gates.metrics import read_metric
from autoxrd.gates.policy_model import ModelClassLimits

if TYPE_CHECKING:  # names of types only: `autoxrd policy` must not load numpy
    from autoxrd.science.suspects import MagneticOrder, OtherWavelength, Suspects

__all__ = ["AuditFinding", "misfit_beyond_noise", "structural_misfit", "wrong_kind"]

_CELL_CHANGE = "cell_change."


class AuditFinding(BaseModel):
    """One thing that the audit found, with its figures."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    code: str
    text: str
    measured: float | None = None
    limit: float | None = None


def misfit_beyond_noise(rwp_no_background: float, gof: float) -> float:
    """Return ``Rwp_nb * sqrt(1 - 1/GoF^2)``: the background-corrected misfit less what counting noise explains.

    Since GoF = Rwp/Rexp, this is sqrt(Rwp_nb^2 - Rexp_nb^2) (Toby 2006, doi:10.1154/1.2179804). 0 for GoF <= 1.
    """
    if not gof > 1.0:
        return 0.0
    return rwp_no_background * math.sqrt(1.0 - 1.0 / (gof * gof))


def structural_misfit(state: FitState) -> float | None:
    """Return the part of the misfit that free intensities would take away: what is the structure's alone.

    Background-corrected Rwp times sqrt(1 - (Rwp of the profile match / Rwp)^2); None where no profile match was made.
    """
    reachable, rwp = read_metric(state, "reachable_rwp").value, state.quality.rwp
    if reachable is None or not rwp > 0:
        return None
    return state.quality.rwp_no_background * math.sqrt(max(0.0, 1.0 - (reachable / rwp) ** 2))


def wrong_kind(
    state: FitState, limits: ModelClassLimits, suspects: Suspects | None = None
) -> Iterator[tuple[bool, AuditFinding]]:
    """Yield (whether it forbids success, finding): causes first, then signs.

    Args:
        state: the final state.
        limits: of the policy.
        suspects: what was looked for beyond the model, None where nothing was.
    """
    signs = [*_strongest(state, limits), *_structure(state, limits)]
    if suspects is not None and suspects.wavelength is not None:
        yield True, _wavelength(suspects.wavelength)
    if suspects is not None and suspects.magnetic is not None:
        yield any(abstain for abstain, _ in signs), _magnetic(suspects.magnetic)
    yield from signs


def _wavelength(found: OtherWavelength) -> AuditFinding:
    text = (
        f"with {found.anode} radiation ({found.other_angstrom:.4f} angstrom) the phases explain "
        f"{found.explained_other:.0%} of the signal, with the stated {found.stated_angstrom:.4f} angstrom "
        f"{found.explained_stated:.0%}: check which tube measured this pattern"
    )
    return AuditFinding(code="wavelength_doubtful", text=text, measured=found.explained_other)


def _magnetic(found: MagneticOrder) -> AuditFinding:
    index = " ".join(f"{i:g}" for i in found.hkl)
    text = (
        f"the line at {found.two_theta_deg:.2f} deg (d = {found.d_angstrom:.3f} angstrom) and "
        f"{found.indexed_share:.0%} of the unexplained low-angle intensity stand at lattice points of {found.cell} of "
        f"{found.phase} ({index}) where the nuclear structure has no line: magnetic order, which the model lacks"
    )
    return AuditFinding(code="magnetic_order_suspected", text=text, measured=found.indexed_share)


def _strongest(state: FitState, limits: ModelClassLimits) -> Iterator[tuple[bool, AuditFinding]]:
    ratio = read_metric(state, "unexplained.strongest").value
    if ratio is None or ratio <= limits.strongest_unexplained:
        return
    at = max(state.unexplained_peaks, key=lambda p: p.area, default=None)
    where = f"at {at.two_theta_deg:.2f} deg (d = {at.d_angstrom:.3f} angstrom) " if at else ""
    text = f"an observed line {where}that no phase explains has {ratio:.0%} of the intensity of the strongest line"
    finding = AuditFinding(
        code="strong_line_unexplained", text=text, measured=ratio, limit=limits.strongest_unexplained
    )
    yield True, finding


def _structure(state: FitState, limits: ModelClassLimits) -> Iterator[tuple[bool, AuditFinding]]:
    """Lines in place, intensities wrong, structural freedom used: another structure has this lattice."""
    misfit = structural_misfit(state)
    if misfit is None or misfit <= limits.structure_misfit:
        return
    bent = _bent(state, limits)
    alone = misfit > limits.structure_misfit_alone
    limit = limits.structure_misfit_alone if alone else limits.structure_misfit
    reachable = read_metric(state, "reachable_rwp").value or 0.0
    text = (
        f"with free intensities the same profile reaches Rwp {100 * reachable:.1f} %, the structure "
        f"{100 * state.quality.rwp:.1f} %: {misfit:.0%} of the signal is misfit of intensities"
    )
    if bent:
        text += f", although {' and '.join(bent)}: the structure is probably another one"
    yield (
        alone or bool(bent),
        AuditFinding(code="structure_not_supported", text=text, measured=misfit, limit=limit),
    )


def _bent(state: FitState, limits: ModelClassLimits) -> list[str]:
    """Say where the model had to leave what is usual to come as near as it did."""
    found = []
    for name, feature in state.features.items():
        if name.startswith(_CELL_CHANGE) and feature.value is not None and feature.value > limits.cell_moved:
            found.append(f"a cell length of {name.removeprefix(_CELL_CHANGE)} moved by {feature.value:.1%}")
    for parameter in state.parameters:
        if parameter.released and parameter.name.endswith(".uiso") and parameter.value > limits.uiso_doubtful:
            label = parameter.name.split(".")[-2]
            found.append(f"U of {label} became {parameter.value:.3f} angstrom^2")
    return found[:3]
