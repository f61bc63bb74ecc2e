"""A fast part of the defect bench: one defect in a simulated pattern, and the cause that the features name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from autoxrd.domain.state import Feature
from autoxrd.engines.protocol import EngineSession
from autoxrd.engines.registry import get_engine
from autoxrd.science.diagnosis import DiagnosisSettings, rank_causes
from benchmarks.defects.run import SEED, Record, run_one
from benchmarks.defects.score import BY_NAME, judge
from benchmarks.defects.simulation import Laboratory
from benchmarks.defects.structures import SAMPLES
from tests.support.engines import need

LEVEL = 10_000


@pytest.fixture(scope="module")
def session() -> Iterator[EngineSession]:
    need(get_engine("rietx"))
    started = get_engine("rietx").start()
    yield started
    started.close()


@pytest.fixture(scope="module")
def laboratory(session: EngineSession) -> Laboratory:
    return Laboratory(session, next(sample for sample in SAMPLES if sample.name == "zincite"))


def measured(laboratory: Laboratory, defect: str, index: int, level: int = LEVEL) -> Record:
    return run_one(laboratory, BY_NAME[defect], index, level, SEED)


@pytest.mark.parametrize(
    ("defect", "index"),
    [
        ("zero", 2),
        ("zero", 4),
        ("displacement", 3),
        ("cell", 3),
        ("cell_axis", 4),
        ("wavelength", 4),
        ("width_gauss", 3),
        ("size", 3),
        ("strain", 4),
        ("asymmetry", 4),
        ("texture", 3),
        ("uiso", 3),
        ("occupancy", 3),
        ("missing_phase", 3),
        ("wrong_phase", 4),
        ("background", 3),
        ("ka2_ratio", 4),
    ],
)
def test_a_clear_defect_is_named(laboratory: Laboratory, defect: str, index: int) -> None:
    record = measured(laboratory, defect, index)

    assert record.cost > 25.0
    assert judge(record).named[0] in BY_NAME[defect].causes


def test_a_short_range_names_all_that_it_cannot_tell_apart(laboratory: Laboratory) -> None:
    verdict = judge(measured(laboratory, "truncated", 4))

    assert {"zero", "displacement"} <= set(verdict.named)


@pytest.mark.parametrize("level", [1_000, 100_000])
@pytest.mark.parametrize("index", range(3))
def test_noise_alone_has_no_cause_and_no_unexplained_peak(laboratory: Laboratory, level: int, index: int) -> None:
    record = measured(laboratory, "none", index, level)

    assert judge(record).named == ("none",)
    assert (record.read_features()["unexplained_peak_ratio"].value or 0.0) < 0.005


def test_a_shift_of_one_width_is_no_unexplained_intensity(laboratory: Laboratory) -> None:
    record = measured(laboratory, "zero", 4)

    assert (record.read_features()["unexplained_peak_ratio"].value or 0.0) < 0.02


def test_a_missing_phase_gives_its_share_of_the_area(session: EngineSession) -> None:
    corundum = Laboratory(session, next(sample for sample in SAMPLES if sample.name == "corundum"))

    record = measured(corundum, "missing_phase", 3)

    found = record.read_features()["unexplained_peak_ratio"].value
    assert found == pytest.approx(record.missing_share, rel=0.2)


def _features(**values: tuple[float, float]) -> dict[str, Feature]:
    found = {"chi2": Feature(value=1200.0), "gof": Feature(value=1.1)}
    return found | {
        name.replace("__", "."): Feature(value=value, significance=significance, n_used=1)
        for name, (value, significance) in values.items()
    }


def test_nothing_is_named_below_the_threshold() -> None:
    assert rank_causes(_features(release_gain__instrument__zero=(0.01, 12.0))) == ()


def test_the_strongest_comes_first_and_a_near_one_is_its_rival() -> None:
    causes = rank_causes(
        _features(
            release_gain__instrument__zero=(0.10, 100.0),
            release_gain__sample__displacement=(0.099, 99.0),
            release_gain__profile__W=(0.05, 50.0),
        )
    )

    assert [(cause.name, cause.rival) for cause in causes] == [("zero", False), ("displacement", True)]


def test_where_lines_are_out_of_place_their_offsets_speak_first() -> None:
    features = _features(
        release_gain__instrument__ka2_ratio=(0.10, 100.0),
        release_gain__instrument__zero=(0.05, 50.0),
        position__rms=(0.9, 40.0),
        position__alone__zero=(0.1, 30.0),
        position__alone__cell=(0.001, 20.0),
    )

    assert rank_causes(features)[0].name == "zero"


def test_thresholds_are_settings() -> None:
    features = _features(release_gain__instrument__zero=(0.01, 12.0))

    assert rank_causes(features, DiagnosisSettings(detect_z=3.0))[0].name == "zero"
