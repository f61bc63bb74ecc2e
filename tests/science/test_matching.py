"""Candidates in simulated patterns: the right set is found, with its cells and shift; what is not there is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from autoxrd.domain.instrument import Geometry
from autoxrd.science.matching import MatchSettings, first_choice, lines_of
from autoxrd.science.matching.compare import contrasts
from autoxrd.science.matching.leftover import left_lines
from autoxrd.science.matching.overview import Observed, Search, fwhm_along, search_for
from autoxrd.science.matching.state import candidate_features
from tests.science.simulate import CORUNDUM, CU, FLUORITE, ORTHO, ZINCITE, Model, Phase, base, reflections, simulate

SETTINGS = MatchSettings()
WAVELENGTHS = tuple(line.wavelength_angstrom for line in CU)
RUTILE = Phase("rutile", (4.5937, 4.5937, 2.9587, 90, 90, 90), "P 42/m n m", seed=13)
ALL = (CORUNDUM, FLUORITE, ZINCITE, ORTHO, RUTILE)


def _stretched(phase: Phase, strain: float) -> Phase:
    a, b, c, *angles = phase.cell
    return replace(phase, cell=(a * (1 + strain), b * (1 + strain), c * (1 + strain), *angles))


def _search(truth: Model, candidates: Sequence[Phase], seed: int = 0) -> Search:
    """Prepare a search in the data of a true model for candidates as their files would give them."""
    table = reflections(base(*candidates))
    data = simulate(truth, truth, seed)
    observed = Observed(data.x, data.y_obs, data.sigma, fwhm_along(data.x, table))
    lines = [lines_of(table, i, p.name, WAVELENGTHS) for i, p in enumerate(candidates)]
    return search_for(observed, lines, Geometry.BRAGG_BRENTANO, SETTINGS)


def test_two_phases_are_found_off_their_places_among_five() -> None:
    truth = base(
        _stretched(FLUORITE, 0.006), replace(_stretched(ZINCITE, -0.003), scale=0.2), displacement_mm=-0.35, counts=2e3
    )
    first = first_choice(_search(truth, ALL).ranked(), SETTINGS)
    assert first is not None
    assert first.names == ("fluorite", "zincite")
    assert first.members[0].name == "fluorite"  # the strongest first
    strains = {m.name: m.strain for m in first.members}
    assert strains["fluorite"] == pytest.approx(0.006, abs=7e-4)
    assert strains["zincite"] == pytest.approx(-0.003, abs=7e-4)
    # -2 s / R radians at low angle
    assert first.shift_deg == pytest.approx(np.rad2deg(2 * 0.35 / 200), abs=0.05)
    assert all(m.seen > 0.9 for m in first.members)


def test_none_of_these() -> None:
    search = _search(base(ORTHO, counts=2e3), (CORUNDUM, FLUORITE, ZINCITE))
    assert first_choice(search.ranked(), SETTINGS) is None
    left = left_lines(search.bank, search.target_at(0.0), None)
    strongest = reflections(base(ORTHO))
    at = float(strongest.position[np.argmax(strongest.intensity / strongest.fwhm)])
    assert min(abs(line.two_theta_deg - at) for line in left) < 0.15


def test_one_structure_twice_is_one_phase_and_cannot_be_told_apart() -> None:
    twin = replace(CORUNDUM, name="corundum_again")
    search = _search(base(CORUNDUM, counts=2e3), (CORUNDUM, twin, FLUORITE))
    first = first_choice(search.ranked(), SETTINGS)
    assert first is not None
    assert len(first.names) == 1
    assert search.bank.likeness("corundum", "corundum_again") > SETTINGS.same
    assert contrasts(search.bank, "corundum", "corundum_again") == ()
    assert contrasts(search.bank, "corundum", "fluorite")


def test_a_hump_under_the_pattern_brings_no_phase() -> None:
    truth = base(FLUORITE, counts=2e3, background=(400.0, -200.0, -150.0, 90.0, 60.0, -50.0))
    first = first_choice(_search(truth, ALL).ranked(), SETTINGS)
    assert first is not None
    assert first.names == ("fluorite",)


def _features(truth: Model, fit: Model) -> dict[str, float | None]:
    result = simulate(truth, fit)
    table = reflections(base(*ALL))
    lines = {p.name: lines_of(table, i, p.name, WAVELENGTHS) for i, p in enumerate(ALL)}
    return {name: f.value for name, f in candidate_features(result, lines, WAVELENGTHS, SETTINGS).items()}


def test_the_residual_names_the_phase_that_is_missing() -> None:
    truth = base(CORUNDUM, replace(_stretched(ZINCITE, 0.004), scale=0.1), displacement_mm=-0.1, counts=3e3)
    found = _features(truth, base(CORUNDUM, displacement_mm=-0.1, counts=3e3))
    assert found["candidate.zincite"] > 0.5
    assert found["candidate.zincite.seen"] > 0.9
    assert found["candidate.zincite.strain"] == pytest.approx(0.004, abs=7e-4)
    for other in ("fluorite", "ortho", "rutile"):
        seen = found[f"candidate.{other}.seen"]
        assert found[f"candidate.{other}"] < 0.1 or seen is None or seen < 0.5
    assert "candidate.corundum" not in found


def test_a_rival_is_weighed_in_the_place_of_a_phase() -> None:
    twin = replace(CORUNDUM, name="rutile")  # its name stands among the candidates, its lines are corundum's
    result = simulate(base(CORUNDUM, counts=3e3), base(CORUNDUM, counts=3e3))
    table = reflections(base(CORUNDUM, twin))
    lines = {name: lines_of(table, i, name, WAVELENGTHS) for i, name in enumerate(("corundum", "rutile"))}
    found = candidate_features(result, lines, WAVELENGTHS, SETTINGS)
    assert found["candidate.rutile.for.corundum"].value == pytest.approx(1.0, abs=0.02)
    assert found["candidate.rutile.for.corundum.strain"].value == pytest.approx(0.0, abs=3e-4)
    assert found["candidate.rutile"].value < 0.02
