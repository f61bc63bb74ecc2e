"""A profile match on either engine: its gains, its intensities, and a phase of which only the cell is known."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from autoxrd.domain.pattern import Pattern
from autoxrd.engines.executor import ProtocolSession
from autoxrd.engines.protocol import EngineCommand, EngineResult
from autoxrd.errors import UserInputError
from tests.engines.samples import LAB, RUTILE, ZINCITE, parameter, simulated, values

PHASES = (RUTILE, ZINCITE)
BARE = tuple(dataclasses.replace(phase, atoms=()) for phase in PHASES)
FREE = ("background.*", "phase.*.cell")
TRUE = {"rutile.cell.a": 4.5955, "rutile.cell.c": 2.9597, "zincite.cell.a": 3.2508, "zincite.cell.c": 5.2084}


def chi2(result: EngineResult) -> float:
    return float(np.sum(((result.y_obs - result.y_calc) / result.sigma) ** 2))


@pytest.fixture(scope="module")
def measured(rietx: ProtocolSession) -> tuple[Pattern, EngineResult]:
    """Two phases with small misfits of several kinds: displacement, widths, axial divergence."""
    truth = values(
        phase__rutile__scale=1e-2,
        phase__zincite__scale=1e-2,
        background__0=150.0,
        background__1=-30.0,
        sample__displacement=0.01,
        phase__zincite__size=0.006,
    )
    cells = values(**{f"phase__{name.replace('.', '__')}": value for name, value in TRUE.items()})
    return simulated(rietx, LAB, PHASES, (*truth, *cells))


def matched(session: ProtocolSession, pattern: Pattern, *released: str, **options: bool) -> EngineResult:
    root = session.prepare(pattern, LAB, BARE, {})
    return session.execute(root, EngineCommand(released=(*FREE, *released), mode="lebail", **options))[1]


def test_a_gain_of_a_profile_match_is_what_a_release_brings(
    either: ProtocolSession, measured: tuple[Pattern, EngineResult]
) -> None:
    pattern, _ = measured
    before = matched(either, pattern)
    # with cells and intensities free a release wins a tenth of what it would with these held
    for name in ("sample.displacement", "phase.zincite.size", "profile.X"):
        after = matched(either, pattern, name, gains=False)
        won = chi2(before) - chi2(after)
        assert won > 4.0, name
        assert before.gains[name] == pytest.approx(won, rel=0.15), name
    assert before.gains["phase.zincite.cell"] < 1e-2
    assert before.gains["background.more"] < 25.0
    assert set(before.gains) == set(before.gain_counts)
    hidden = ("scale", ".atom.", "uiso", "preferred_orientation", "extinction", "roughness")
    assert not [name for name in before.gains if any(word in name for word in hidden)]


def test_a_cell_is_found_without_atoms_and_its_esd_holds(
    either: ProtocolSession, measured: tuple[Pattern, EngineResult]
) -> None:
    result = matched(either, measured[0], "sample.displacement", "phase.zincite.size")
    assert result.convergence.converged
    assert result.engine_r["gof"] < 1.06
    assert result.matched > 20
    for name, true in TRUE.items():
        value, esd = parameter(result, f"phase.{name}")
        assert esd is not None
        assert abs(value - true) < 4.0 * esd
    assert all(phase.weight_fraction is None and not phase.structure.atoms for phase in result.phases)
    assert not [p.name for p in result.parameters if ".atom." in p.name or p.name.endswith((".scale", ".density"))]


def test_the_intensities_are_the_structure_factors(
    either: ProtocolSession, measured: tuple[Pattern, EngineResult]
) -> None:
    pattern, truth = measured
    table = matched(either, pattern, "sample.displacement", "phase.zincite.size").reflections
    assert table.f2_esd is not None
    true = truth.reflections
    lines, first = np.flatnonzero(true.line == 0), np.flatnonzero(table.line == 0)
    pulls = []
    for k in first:
        # engines name different ones of equivalent indices
        away = np.abs(true.position[lines] - table.position[k])
        nearest = lines[np.argmin(away)]
        if np.sum(away < 0.6) == 1 and table.f2_calc[k] > 0.0 and true.phase[nearest] == table.phase[k]:
            esd = table.intensity[k] * table.f2_esd[k] / table.f2_calc[k]
            pulls.append((table.intensity[k] - true.intensity[nearest]) / esd)
    assert len(pulls) > 10
    assert np.max(np.abs(pulls)) < 4.5
    assert 0.3 < np.std(pulls) < 2.0


def test_without_atoms_there_is_no_rietveld_fit(
    either: ProtocolSession, measured: tuple[Pattern, EngineResult]
) -> None:
    root = either.prepare(measured[0], LAB, BARE, {})
    with pytest.raises(UserInputError, match="rutile has no atoms") as caught:
        either.execute(root, EngineCommand(released=("background.*",)))
    assert caught.value.code == "no_atoms"


def test_a_match_of_a_known_structure_starts_anew_and_goes_back(
    either: ProtocolSession, measured: tuple[Pattern, EngineResult]
) -> None:
    pattern, _ = measured
    root = either.prepare(pattern, LAB, PHASES, {})
    placed, match = either.execute(root, EngineCommand(released=(*FREE, "sample.displacement"), mode="lebail"))
    _, result = either.execute(placed, EngineCommand(released=("phase.*.scale", "background.*")))
    assert match.matched > 20
    assert result.matched == 0
    for name in TRUE:
        assert parameter(result, f"phase.{name}")[0] == pytest.approx(parameter(match, f"phase.{name}")[0], rel=1e-9)
    assert result.engine_r["gof"] < 1.2
