"""Order, chunks, jumps and starts of a series, without an engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoxrd.agent.starting import decode_start, encode_start, root_command, start_from
from autoxrd.domain.action import Bound
from autoxrd.domain.state import MeasuredValue, ParameterValue
from autoxrd.engines.protocol import Edit
from autoxrd.errors import UserInputError
from autoxrd.report.series_model import PatternRow, PhaseRow
from autoxrd.series.jumps import jumps
from autoxrd.series.ordering import Place, chunks_of, ordered, read_values
from tests.gates.factory import state


def names(*texts: str) -> list[Path]:
    return [Path(text) for text in texts]


def in_order(paths: list[Path], order: str, known: dict[str, float] | None = None, **headers: float) -> list[str]:
    stated = {path: headers.get(path.stem) for path in paths}
    return [place.path.name for place in ordered(paths, order, known=known or {}, headers=stated).places]  # type: ignore[arg-type]


def test_orders() -> None:
    paths = names("scan_10.xy", "scan_9.xy", "Scan_1.xy")
    assert in_order(paths, "file") == ["scan_10.xy", "scan_9.xy", "Scan_1.xy"]
    assert in_order(paths, "name") == ["Scan_1.xy", "scan_9.xy", "scan_10.xy"]
    assert in_order(names("a_400K.xy", "b_25C.xy", "c_77.5K.xy"), "temperature") == [
        "c_77.5K.xy",
        "b_25C.xy",
        "a_400K.xy",
    ]
    assert in_order(names("x_2h.xy", "x_30min.xy", "x_90s.xy"), "time") == ["x_90s.xy", "x_30min.xy", "x_2h.xy"]


def test_a_table_goes_before_the_header_and_the_header_before_the_name() -> None:
    paths = names("a_400K.xy", "b_300K.xy")
    assert in_order(paths, "temperature", a_400K=100.0) == ["a_400K.xy", "b_300K.xy"]
    assert in_order(paths, "temperature", {"a_400K.xy": 500.0}, a_400K=100.0) == ["b_300K.xy", "a_400K.xy"]


def test_values_are_in_kelvin_and_seconds_or_there_are_none() -> None:
    course = ordered(names("b_25C.xy", "a_-10C.xy"), "file", known={}, headers={})
    assert [round(place.value or 0.0, 2) for place in course.places] == [298.15, 263.15]
    assert (course.quantity, course.unit) == ("temperature", "K")
    half = ordered(names("b_25C.xy", "plain.xy"), "file", known={}, headers={})
    assert (half.quantity, half.unit) == ("", "")
    assert all(place.value is None for place in half.places)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(UserInputError, match=r"plain\.xy.*--values"):
        in_order(names("b_25C.xy", "plain.xy"), "temperature")


def test_tables(tmp_path: Path) -> None:
    table = tmp_path / "values.csv"
    table.write_text("file,T / K\nscans/a.xy,300\nb.xy, 320.5\n\n# note\n")
    assert read_values(table) == {"a.xy": 300.0, "b.xy": 320.5}
    table.write_text("a.xy;300\nb.xy;warm\n")
    with pytest.raises(UserInputError, match=r"Line 2.*'file,value'"):
        read_values(table)
    with pytest.raises(UserInputError, match=r"missing\.csv"):
        read_values(tmp_path / "missing.csv")


@pytest.mark.parametrize(("n", "count", "sizes"), [(7, 2, [4, 3]), (5, 1, [5]), (2, 8, [1, 1]), (10, 3, [3, 4, 3])])
def test_chunks_are_runs_of_neighbours(n: int, count: int, sizes: list[int]) -> None:
    places = [Place(i, Path(f"{i}.xy"), None) for i in range(1, n + 1)]
    chunks = chunks_of(places, count)
    assert [len(chunk) for chunk in chunks] == sizes
    assert [place for chunk in chunks for place in chunk] == places


def row(*phases: str, a: float = 5.0, q: float = 0.001, misfit: float = 0.03, verdict: str = "accepted") -> PatternRow:
    cell = {key: MeasuredValue(value=a) for key in ("a", "b", "c")}
    found = [
        PhaseRow(
            name=name,
            seen=True,
            cell=cell,
            weight_fraction=None,
            absolute_weight_fraction=None,
            widths={},
            r_bragg_percent=None,
        )
        for name in phases
    ]
    return PatternRow(
        number=1, name="p.xy", sha256="", value=None, verdict=verdict, started_from="neighbour", restarted_because=[],
        codes=[], error="", misfit=misfit, unexplained_peak_ratio=q, phases=found, job="001-p", other_job="",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("after", "codes"),
    [
        (row("main", a=5.01), []),
        (row("main", a=5.03), ["cell_jump"]),
        (row("main", q=0.03), ["unexplained_jump"]),
        (row("main", misfit=0.06), ["misfit_jump"]),
        (row("main", "new"), ["phase_appeared"]),
        (row("new"), ["phase_vanished", "phase_appeared"]),
        (row("main", verdict="abstained"), ["abstained"]),
    ],
)
def test_jumps(after: PatternRow, codes: list[str]) -> None:
    assert jumps(row("main"), after) == codes


def test_a_series_that_fits_badly_all_along_is_no_jump() -> None:
    assert jumps(row("main", misfit=0.20), row("main", misfit=0.23)) == []


def test_a_start_takes_over_what_the_fit_determined_and_nothing_else() -> None:
    rows = (
        ParameterValue(name="phase.fap.scale", value=2.0, esd=0.1, released=True),
        ParameterValue(name="phase.fap.size", value=0.2, esd=0.1, released=True),
        ParameterValue(name="phase.fap.cell.a", value=9.4, esd=0.1, released=True),
        ParameterValue(name="sample.displacement", value=-0.1, esd=0.01, released=True),
        ParameterValue(name="profile.U", value=0.3),
        ParameterValue(name="instrument.zero", value=0.0),
        ParameterValue(name="background.0", value=50.0, esd=1.0, released=True),
        ParameterValue(name="background.1", value=-5.0, esd=1.0, released=True),
    )
    fit = state().model_copy(
        update={
            "parameters": rows,
            "released": ("phase.fap.scale", "phase.fap.size", "phase.gone.scale", "background", "sample.displacement"),
            "bounds": (
                Bound(selector="phase.fap.size", lower=0.0, upper=3.0),
                Bound(selector="phase.gone.size", lower=0.0, upper=3.0),
            ),
            "phases": tuple(p.model_copy(update={"name": "fap"}) for p in state().phases[:1]),
        }
    )
    start = start_from(
        fit,
        (),
        (
            Edit("background", {"terms": 12}),
            Edit("texture", {"phase": "gone", "axis": (0.0, 0.0, 1.0)}),
            Edit("equal_uiso", {"phases": ["gone", "fap"]}),
        ),
        kept=("fap",),
        held=frozenset(("instrument.zero",)),
        source={"state": "s1"},
    )
    values = {e.values["selector"]: e.values["value"] for e in start.edits if e.kind == "value"}
    assert values == {"phase.fap.size": 0.2, "sample.displacement": -0.1, "instrument.zero": 0.0}
    assert [(e.kind, e.values) for e in start.edits if e.kind != "value"] == [
        ("background", {"terms": 12}),
        ("equal_uiso", {"phases": ["fap"]}),
    ]
    # nothing of a phase that this job does not begin with
    assert start.released == ("phase.fap.scale", "phase.fap.size", "background", "sample.displacement")
    assert [bound.selector for bound in start.bounds] == ["phase.fap.size"]
    assert decode_start(encode_start(start)) == start
    command = root_command(start)
    assert command.cycles == 0
    assert command.released == start.released
