"""The page in a real browser: it draws, answers, asks for nothing and runs nothing that a file name brought along."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from autoxrd.domain.pattern import Notice
from autoxrd.report.build import render_files
from autoxrd.report.model import ReportInput
from tests.report.factory import HOSTILE, report_input
from tests.support.chromium import chromium

pytestmark = pytest.mark.browser


@dataclass
class Opened:
    """A page with what it said and asked for."""

    page: Any
    console: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def clean(self) -> bool:
        return not self.console and not self.requests


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


def opened(browser: Any, directory: Path, inp: ReportInput, width: int = 1280) -> Opened:
    path = directory / "report.html"
    path.write_bytes(render_files(inp)[0]["report.html"])
    result = Opened(browser.new_page(viewport={"width": width, "height": 900}))
    result.page.on("console", lambda m: result.console.append(m.text))
    result.page.on("pageerror", lambda e: result.console.append(str(e)))
    result.page.on("request", lambda r: result.requests.append(r.url) if not r.url.startswith("file://") else None)
    result.page.goto(path.as_uri())
    result.page.wait_for_selector("#fit-plot[data-ready=true]", timeout=60_000)
    result.page.wait_for_selector("#step-plot[data-ready=true]", timeout=60_000)
    return result


@pytest.fixture(scope="module")
def report(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    result = opened(browser, tmp_path_factory.mktemp("report"), report_input())
    yield result
    assert result.clean(), (result.console, result.requests)
    result.page.close()


def _trace(report: Opened, index: str) -> Any:
    return report.page.evaluate(f"document.getElementById('fit-plot').data{index}")


def test_the_plot_is_drawn_with_every_phase_s_ticks(report: Opened) -> None:
    points = report.page.evaluate("document.querySelectorAll('#fit-plot .scatterlayer .point').length")
    assert points > 1000
    names = _trace(report, ".filter(t => t.yaxis === 'y2').map(t => t.name)")
    assert names == ["fluorapatite", "corundum"]
    assert report.page.evaluate("document.documentElement.scrollWidth") <= 1280
    assert report.clean()


def test_long_patterns_are_thinned_on_the_screen_and_the_caption_says_so(report: Opened) -> None:
    assert "of the 6001 points in view" in report.page.inner_text("#thinning")
    drawn = _trace(report, ".filter(t => t.mode === 'markers')[0].x.length")
    assert drawn <= 4000
    tallest = report.page.evaluate(
        "Math.max(...document.getElementById('fit-plot').data.filter(t => t.mode === 'markers')[0].y)"
    )
    assert tallest == report_input().arrays.y_obs.max()


def test_square_root_scale_and_back(report: Opened) -> None:
    top = "Math.max(...document.getElementById('fit-plot').data.filter(t => t.mode === 'markers')[0].y)"
    linear = report.page.evaluate(top)
    report.page.click("text=Square root")
    report.page.wait_for_function(f"{top} < {linear} / 2")
    assert report.page.evaluate(top) == pytest.approx(linear**0.5)
    labels = report.page.evaluate("document.getElementById('fit-plot').layout.yaxis.ticktext")
    assert "1000" in labels
    assert "0" in labels
    report.page.click("text=Linear")
    report.page.wait_for_function(f"{top} == {linear}")


def test_zoom_shows_every_point_and_double_click_goes_back(report: Opened) -> None:
    page = report.page
    page.evaluate("document.getElementById('fit').scrollIntoView({behavior: 'instant'})")
    box = page.query_selector("#fit-plot .nsewdrag").bounding_box()
    y = box["y"] + 150
    page.mouse.move(box["x"] + 200, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 330, y + 2, steps=5)
    page.mouse.up()
    page.wait_for_function("document.getElementById('fit-plot').layout.xaxis.range[1] < 60")
    assert page.inner_text("#thinning") == ""
    page.mouse.dblclick(box["x"] + 300, y)
    page.wait_for_function("document.getElementById('fit-plot').layout.xaxis.range[1] > 119")


def test_a_phase_can_be_switched_off(report: Opened) -> None:
    report.page.click("#phase-toggles label:nth-of-type(2)")
    hidden = "document.getElementById('fit-plot').data.filter(t => t.yaxis === 'y2')[1].visible"
    report.page.wait_for_function(f"{hidden} === false")
    report.page.click("#phase-toggles label:nth-of-type(2)")
    report.page.wait_for_function(f"{hidden} === true")


def test_a_step_shows_its_evidence_by_mouse_and_keyboard(report: Opened) -> None:
    page = report.page
    assert page.is_visible("#step-13")
    page.click("#graph .row[data-step='3']")
    assert page.is_visible("#step-3")
    assert not page.is_visible("#step-13")
    text = page.inner_text("#step-3")
    for expected in ("position.rms", "> 0.05", "position.zero", "moves towards 0 by at least 0.01", "0.991", "0.98"):
        assert expected in text
    page.focus("#graph .row[data-step='4']")
    page.keyboard.press("Enter")
    assert page.is_visible("#step-4")
    page.keyboard.press("ArrowDown")
    assert page.is_visible("#step-5")
    page.click("#gates button[data-step='7']")
    assert page.is_visible("#step-7")


def test_parameters_can_be_searched(report: Opened) -> None:
    report.page.fill("#parameter-search", "corundum uiso")
    assert report.page.inner_text("#parameter-count").startswith("2 of ")
    report.page.fill("#parameter-search", "")
    report.page.click("#parameters label:has-text('Derived')")
    assert report.page.locator("#parameter-table tbody tr:visible .status.refined").count() == 0
    report.page.click("#parameters label:has-text('All')")


def test_the_plot_can_be_saved_as_svg(report: Opened) -> None:
    report.page.hover("#fit-plot .nsewdrag")
    with report.page.expect_download() as caught:
        report.page.click("#fit-plot .modebar-btn[data-title^='Download']")
    assert caught.value.suggested_filename == "fit.svg"
    report.page.evaluate("window.scrollTo(0, 0)")


def test_hostile_text_is_inert(browser: Any, tmp_path: Path) -> None:
    base = report_input(n=601)
    steps = tuple(
        dataclasses.replace(s, action=s.action.model_copy(update={"rationale": HOSTILE, "parameters": (HOSTILE,)}))
        for s in base.steps
    )
    phases = tuple(p.model_copy(update={"name": HOSTILE, "space_group": HOSTILE}) for p in base.state.phases[:1])
    structures = (dataclasses.replace(base.structures[0], name=HOSTILE, title=HOSTILE), base.structures[1])
    atoms = tuple(dataclasses.replace(a, label=HOSTILE) for a in structures[0].atoms)
    structures = (dataclasses.replace(structures[0], atoms=atoms), structures[1])
    inp = dataclasses.replace(
        base,
        job=dataclasses.replace(base.job, pattern_name=HOSTILE, pattern_title=HOSTILE, command=HOSTILE),
        state=base.state.model_copy(update={"phases": (*phases, base.state.phases[1])}),
        structures=structures,
        steps=steps,
        warnings=(Notice(HOSTILE, HOSTILE),),
        reasons=(Notice(HOSTILE, HOSTILE),),
    )
    result = opened(browser, tmp_path, inp)
    assert result.page.evaluate("window.hacked") is None
    assert result.page.inner_text("h1").startswith(HOSTILE)
    assert result.page.locator("img").count() == 0
    box = result.page.query_selector("#fit-plot .nsewdrag").bounding_box()
    result.page.mouse.move(box["x"] + 40, box["y"] + 410)
    assert result.clean(), (result.console, result.requests)
    # Even markup that got past the escaping would find the policy in its way.
    result.page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.hacked=1\">')")
    result.page.wait_for_timeout(200)
    assert result.page.evaluate("window.hacked") is None
    result.page.close()


def test_a_long_synchrotron_pattern_stays_under_six_megabytes_and_opens(browser: Any, tmp_path: Path) -> None:
    inp = report_input(n=60_000)
    size = len(render_files(inp)[0]["report.html"])
    assert size < 6e6, size
    result = opened(browser, tmp_path, inp)
    assert "of the 60000 points in view" in result.page.inner_text("#thinning")
    assert result.clean(), (result.console, result.requests)
    result.page.close()


def test_a_job_without_phases_or_steps_still_opens(browser: Any, tmp_path: Path) -> None:
    base = report_input(n=301, n_phases=0)
    inp = dataclasses.replace(
        base, steps=(), state=base.state.model_copy(update={"unexplained_peaks": ()}), warnings=()
    )
    result = opened(browser, tmp_path, inp)
    assert result.page.locator("text=No step was tried.").count() == 1
    assert result.clean(), (result.console, result.requests)
    result.page.close()
