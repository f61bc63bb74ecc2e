"""What the page and the methods text say, and how the graph is laid out."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest

from autoxrd.domain.action import ActionKind
from autoxrd.domain.instrument import EmissionLine, Geometry, Radiation
from autoxrd.domain.pattern import Notice
from autoxrd.report.build import render_files
from autoxrd.report.citations import CITATIONS
from autoxrd.report.figures import PlotSettings, fit_figure, thinned
from autoxrd.report.graphview import draw_graph
from autoxrd.report.methods import methods_text
from autoxrd.report.model import Verdict
from autoxrd.report.page import json_for_html
from autoxrd.report.stepview import gate_matrix, step_views
from autoxrd.report.words import KIND_WORDS, VERDICT_WORDS, space_group_html
from tests.report.factory import INSTRUMENT, report_input

ASSETS = Path(__file__).parents[2] / "autoxrd" / "report" / "assets"


def test_methods_cite_what_was_done_and_nothing_else() -> None:
    text = methods_text(report_input(n=301))
    assert {"rietveld", "tch", "caglioti", "fcj", "hill_howard", "mccusker", "toby", "berar", "hoelzer"} <= set(
        text.cited
    )
    assert "march_dollase" not in text.cited
    assert "le_bail" not in text.cited
    joined = " ".join(text.paragraphs)
    assert "rietx 1.10.0" in joined
    assert "Of 13 attempts, 3 were rejected" in joined
    assert "fluorapatite 72.13(16) % and corundum 27.87(16) %" in joined
    assert "41 parameters against 301 points" in joined
    for key in text.cited:
        assert CITATIONS[key].short in joined or key == "rietx"


def test_methods_of_a_neutron_pattern_of_one_phase() -> None:
    neutron = dataclasses.replace(
        INSTRUMENT,
        radiation=Radiation.NEUTRON,
        geometry=Geometry.DEBYE_SCHERRER,
        lines=(EmissionLine(1.909),),
    )
    base = report_input(n=301, n_phases=1)
    inp = dataclasses.replace(
        base,
        job=dataclasses.replace(base.job, instrument=neutron),
        state=base.state.model_copy(update={"engine": "gsasii", "engine_version": "5.4"}),
        verdict=Verdict.ABSTAINED,
        reasons=(Notice("rwp_high", "The misfit is far above what counting explains."),),
    )
    text = methods_text(inp)
    joined = " ".join(text.paragraphs)
    assert "constant-wavelength neutrons (λ = 1.909 Å) in Debye–Scherrer geometry" in joined
    assert "did not accept this refinement as a result: The misfit is far above" in joined
    assert "gsasii" in text.cited
    assert {"hill_howard", "berar", "hoelzer"}.isdisjoint(text.cited)


def test_space_group_symbols_are_set_and_escaped() -> None:
    assert space_group_html("P 63/m") == '<span class="hm"><i>P</i> 6<sub>3</sub>/<i>m</i></span>'
    assert '<span class="bar">3</span>' in space_group_html("R -3 c:H")
    assert space_group_html("I a -3 d").count("bar") == 1
    assert "<sub>" not in space_group_html("P 2 2 2")
    assert "<script" not in space_group_html("<script>P 21")


def test_every_kind_and_verdict_has_words() -> None:
    assert set(KIND_WORDS) == set(ActionKind)
    assert set(VERDICT_WORDS) == set(Verdict)


def test_graph_puts_the_accepted_path_on_one_line_and_the_rejected_beside_it() -> None:
    drawing = draw_graph(report_input(n=301))
    assert {r.x for r in drawing.rows if r.status == "path"} == {drawing.root_x}
    assert [r.ordinal for r in drawing.rows if r.status == "rejected"] == [3, 7, 11]
    assert all(r.x > drawing.root_x for r in drawing.rows if r.status == "rejected")
    assert [r.ordinal for r in drawing.rows if r.final] == [13]
    assert drawing.rows[0].edge == f"M{drawing.root_x} {drawing.root_y}V{drawing.rows[0].y}"


def test_attempts_from_one_state_do_not_look_like_a_chain() -> None:
    base = report_input(n=301)
    # Steps 3, 4 and 5 rejected, all from the state of step 2.
    steps = list(base.steps)
    for i in (2, 3, 4):
        decision = steps[i].decision.model_copy(update={"accepted": False})
        steps[i] = dataclasses.replace(steps[i], parent_state="s02", decision=decision)
    steps[5] = dataclasses.replace(steps[5], parent_state="s02")
    drawing = draw_graph(dataclasses.replace(base, steps=tuple(steps)))
    parent = drawing.rows[1]
    for row in drawing.rows[2:5]:
        down = re.match(rf"M{parent.x} {parent.y}V(\d+)C", row.edge)
        assert down
        assert row.y - 46 < int(down[1]) < row.y
    assert drawing.rows[5].edge == f"M{parent.x} {parent.y}V{drawing.rows[5].y}"


def test_gate_matrix_gathers_the_parts_of_a_rule() -> None:
    matrix = gate_matrix(step_views(report_input(n=301)))
    assert matrix.rules[:3] == ("Preflight", "Engine", "Violations")
    rulings = {ordinal: dict(zip(matrix.rules, row, strict=True)) for ordinal, _, _, row in matrix.rows}
    assert rulings[3]["Correlation"] is False
    assert rulings[3]["Preflight"] is True
    assert all(all(row.values()) for n, row in rulings.items() if n not in {3, 7, 11})


def test_graph_of_a_branch_that_was_left() -> None:
    base = report_input(n=301)
    # From step 8 on everything starts again from the state of step 2: steps 4 to 6 become a branch.
    steps = list(base.steps)
    parent = "s02"
    for i in range(7, len(steps)):
        steps[i] = dataclasses.replace(steps[i], parent_state=parent)
        if steps[i].accepted and steps[i].candidate_state:
            parent = steps[i].candidate_state or ""
    drawing = draw_graph(dataclasses.replace(base, steps=tuple(steps)))
    status = {r.ordinal: r.status for r in drawing.rows}
    assert [n for n, s in status.items() if s == "branch"] == [4, 5, 6]
    lanes = {r.ordinal: r.x for r in drawing.rows}
    assert lanes[4] == lanes[5] == lanes[6] > drawing.root_x
    assert lanes[7] > lanes[6]
    # The line of a branch never runs through a rejected attempt of another.
    assert lanes[3] not in {lanes[4], lanes[7]}
    assert {lanes[n] for n, s in status.items() if s == "path"} == {drawing.root_x}


def test_thinning_keeps_every_extreme() -> None:
    arrays = report_input(n=60_000).arrays
    keep = thinned(arrays, 6_000)
    assert keep.size <= 6_000
    assert np.all(np.diff(keep) > 0)
    assert arrays.y_obs[keep].max() == arrays.y_obs.max()
    assert np.abs(arrays.difference[keep]).max() == np.abs(arrays.difference).max()
    assert thinned(arrays, 60_000).size == 60_000


def test_plot_data_are_the_fit_to_display_precision() -> None:
    inp = report_input(n=2001)
    figure = fit_figure(inp, PlotSettings())

    def unpacked(text: str, kind: str) -> np.ndarray:
        return np.frombuffer(base64.b64decode(text), dtype=kind).astype(float)

    np.testing.assert_allclose(unpacked(figure["obs"], "<f4"), inp.arrays.y_obs, rtol=1e-6)
    np.testing.assert_allclose(unpacked(figure["x"], "<f4"), inp.arrays.x, atol=1e-5)
    phase = figure["phases"][0]["pattern"]
    curve = unpacked(phase["levels"], "<u2") * phase["top"] / 65535
    np.testing.assert_allclose(curve, inp.arrays.phase_patterns[0], atol=phase["top"] / 65535)
    assert json.loads(json_for_html({"t": "</script><!-- \u2028"})) == {"t": "</script><!-- \u2028"}
    assert "<" not in json_for_html({"t": "</script>"})


def test_very_many_reflections_show_the_first_line_only() -> None:
    inp = report_input(n=301)
    few = fit_figure(inp, PlotSettings(embedded_ticks=10))
    lines = {line for phase in few["phases"] for line in phase["ticks"]["line"]}
    assert few["first_line_only"] is True
    assert lines == {0}
    assert fit_figure(inp, PlotSettings())["first_line_only"] is False


def test_the_policy_names_every_script_by_its_hash() -> None:
    page = render_files(report_input(n=301))[0]["report.html"].decode()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert policy
    text = policy[1].replace("&#39;", "'")
    assert "default-src 'none'" in text
    assert "unsafe-eval" not in text
    assert "'unsafe-inline'" not in text.split("script-src")[1].split(";")[0]
    scripts = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(scripts) == 3
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in text


@pytest.mark.parametrize(
    "word", ["Accepted, with warnings", "9.37172(4)", "72.13(16)", "doi:10.1107/S0021889869006558"]
)
def test_the_page_says(word: str) -> None:
    assert word in render_files(report_input(n=301))[0]["report.html"].decode()


def test_the_vendored_plot_library_is_the_one_that_the_readme_names() -> None:
    readme = (ASSETS / "README.md").read_text(encoding="utf-8")
    digest = hashlib.sha256((ASSETS / "plotly-basic.min.js").read_bytes()).hexdigest()
    assert digest in readme
    version = re.search(
        r"plotly\.js \(basic - minified\) v(\S+)", (ASSETS / "plotly-basic.min.js").read_text("utf-8")[:200]
    )
    assert version
    assert f"| {version[1]} |" in readme
    assert "MIT License" in (ASSETS / "plotly-LICENSE.txt").read_text(encoding="utf-8")
