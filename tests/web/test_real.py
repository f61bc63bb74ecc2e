"""A refinement with the real engine, in a real browser: followed, reported, compared, and decided by a person."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .browsing import HOSTILE, Opened, logged_in
from .serving import Service, started

pytestmark = [pytest.mark.browser, pytest.mark.real]


SERIES = f"Warming {HOSTILE}"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with the real engine."""
    with started(tmp_path_factory.mktemp("real"), stub=False) as running:
        yield running


@pytest.fixture(scope="module")
def files(small_job: tuple[Path, Path]) -> list[Any]:
    """Pattern and CIF as parts of a request."""
    return [(p, (path.name, path.read_bytes())) for p, path in zip(("pattern", "structures"), small_job, strict=True)]


@pytest.fixture(scope="module")
def jobs(browser: Any, real: Service, files: list[Any], small_job: tuple[Path, Path]) -> list[str]:
    """Two jobs that are done; the first was followed from before its first step, on a page never loaded again."""
    about = {"measurement": {"anode": "Cu"}, "title": HOSTILE, "sample": {"name": HOSTILE}}
    places = [{"name": SERIES, "value": value, "quantity": "temperature", "unit": "K"} for value in (300.0, 310.0)]
    made = [
        real.submit(files=files, budgets={"steps": steps}, series=place, **about)
        for steps, place in zip((6, 1), places, strict=True)
    ]
    followed(browser, real, made[0], small_job[0])
    real.finished(made[1], 300)
    return made


@pytest.fixture
def reading(browser: Any, real: Service) -> Iterator[Opened]:
    with logged_in(browser, real) as visit:
        yield visit


def followed(browser: Any, real: Service, job: str, pattern: Path) -> None:
    """Open the page of a job and stay on it until the job is over."""
    visit = Opened.at(browser, real)
    visit.log_in()
    page = visit.page
    visit.go(f"/jobs/{job}")
    page.evaluate("window.stayed = true")
    page.wait_for_selector("#graph [data-step='1']", timeout=120_000)
    page.wait_for_selector("#step-plot[data-ready=true]")
    page.wait_for_selector("#fit-plot[data-ready=true]")
    page.wait_for_selector("text=Open the report", timeout=180_000)
    assert page.evaluate("window.stayed"), "not loaded again"
    done = real.job(job)
    figures = page.inner_text("#job-now .tiles")
    assert f"{100 * done['rwp']:.2f} %" in figures
    page.wait_for_function(f"document.querySelectorAll('#graph [data-step]').length === {done['used']['steps']}")
    page.wait_for_function("document.querySelectorAll('#fit-plot .scatterlayer .point').length > 500")
    ticks = "document.getElementById('fit-plot').data.filter(t => t.yaxis === 'y2').map(t => t.name)"
    assert page.evaluate(ticks) == ["fluorite"]
    points = "document.getElementById('step-plot').data.flatMap(t => t.x).length"
    assert page.evaluate(points) == done["used"]["steps"] + 1
    page.wait_for_selector("#details .step-detail.path")  # the panel follows what stands for the result
    visit.sound()
    page.click("#graph [data-step='2']")
    page.wait_for_selector("#step-2")
    assert "Evidence" in page.inner_text("#details")
    assert page.url.endswith("?step=2")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector("#step-3")
    visit.sound()
    assert page.inner_text("h1") == HOSTILE
    with page.expect_download() as caught:
        page.click("text=pattern.xy")
    assert Path(caught.value.path()).read_bytes() == pattern.read_bytes()
    assert visit.complaints == []
    visit.close()


def test_a_job_is_followed_to_its_end(jobs: list[str], real: Service) -> None:
    assert real.job(jobs[0])["verdict"] in {"accepted", "accepted_with_warnings"}


def test_the_report_is_shown_and_everything_can_be_downloaded(reading: Opened, jobs: list[str]) -> None:
    page = reading.page
    reading.go(f"/jobs/{jobs[0]}")
    page.click("text=Open the report")
    frame = page.frame_locator("iframe")
    frame.locator("#fit-plot[data-ready=true]").wait_for()
    assert "pattern.xy: fluorite" in frame.locator("h1").inner_text()
    reach = "() => { try { return parent.document.title } catch (e) { return e.name } }"
    assert frame.locator("body").evaluate(reach) == "SecurityError", "the report reaches nothing of the service"
    reading.sound()
    page.click("text=Downloads")
    reading.sound()
    with page.expect_download() as caught:
        page.click("text=bundle.zip")
    with zipfile.ZipFile(io.BytesIO(Path(caught.value.path()).read_bytes())) as bundle:
        names = set(bundle.namelist())
    listed = set(page.locator(".downloads a").all_inner_texts())
    assert {"report.html", "report.json", "fluorite.cif", "profile.csv", "graph.json"} <= names & listed
    with page.expect_download() as caught:
        page.click("text=fluorite.cif")
    assert b"_cell_length_a" in Path(caught.value.path()).read_bytes()


def test_two_states_and_two_jobs_side_by_side(reading: Opened, jobs: list[str]) -> None:
    page, (first, second) = reading.page, jobs
    reading.go("/compare")
    reading.sound()
    page.select_option("#f-a", first)
    page.click("button:has-text('Compare')")
    page.wait_for_selector("#compare-plot[data-ready=true]")
    assert page.locator("#f-sa option:checked").inner_text().startswith("Start")
    curves = "document.getElementById('compare-plot').data.length"
    assert page.evaluate(curves) == 5, "observed, two calculated, two differences"
    final = 100 * reading.service.job(first)["rwp"]
    assert page.locator(".contrast tbody tr >> nth=0 >> td >> nth=1").inner_text() == f"{final:.3f}"
    assert "phase.fluorite.scale" in page.locator(".contrast >> nth=-1").inner_text()
    reading.sound()
    page.select_option("#f-b", second)
    assert page.is_disabled("#f-sb"), "a state of another job is not a state of this one"
    page.click("button:has-text('Compare')")
    page.wait_for_url("**b=**")
    page.wait_for_selector("#compare-plot[data-ready=true]")
    other = 100 * reading.service.job(second)["rwp"]
    figures = page.locator(".contrast tbody tr >> nth=0 >> td").all_inner_texts()
    assert figures[:2] == [f"{final:.3f}", f"{other:.3f}"]
    reading.sound()


def test_every_page_fits_a_telephone(browser: Any, real: Service, jobs: list[str]) -> None:
    visit = Opened.at(browser, real, width=390)
    visit.log_in()
    for path in (f"/jobs/{jobs[0]}?step=1", f"/jobs/{jobs[0]}/report", f"/compare?a={jobs[0]}&b={jobs[1]}", "/keys"):
        visit.go(path)
        visit.page.wait_for_load_state("networkidle")
        visit.sound()
    assert visit.complaints == []
    visit.close()


def test_what_is_not_there_is_said(reading: Opened, jobs: list[str]) -> None:
    reading.expected.append("404")
    for path in ("/compare?a=00000000-0000-7000-8000-000000000000", f"/compare?a={jobs[0]}&sa={'0' * 16}"):
        reading.go(path)
        assert "There is no" in reading.page.inner_text("main") or "has no state" in reading.page.inner_text("main")


def test_a_person_decides_and_adds_a_step(reading: Opened, files: list[Any]) -> None:
    page = reading.page
    about = {"measurement": {"anode": "Cu"}, "budgets": {"steps": 4}, "review": "each_step"}
    job = reading.service.submit(files=files, **about)
    reading.go(f"/jobs/{job}")
    page.wait_for_selector("text=Accept and try it", timeout=120_000)
    assert page.inner_text("#job-now .now-title") == "It is your turn"
    assert "Evidence:" in page.inner_text("#job-review")
    page.click("text=Add a step of your own")
    reading.sound()
    page.fill("#f-note", "no background here")
    page.click("text=Reject")
    page.wait_for_selector("#graph [data-step='1'].rejected", timeout=120_000)
    page.wait_for_selector("text=Accept and try it", timeout=120_000)
    page.click("text=Add a step of your own")
    page.check("[value='phase.fluorite.cell']")
    page.check("[value='sample.displacement']")
    page.click("text=Add the step")
    reading.expected.append("422")
    page.wait_for_selector("text=A step frees things of one kind")
    page.go_back()
    page.wait_for_selector("text=Add a step of your own")
    if not page.is_visible("#f-why"):
        page.click("text=Add a step of your own")
    page.uncheck("[value='phase.fluorite.cell']")
    page.check("[value='sample.displacement']")
    page.fill("#f-why", HOSTILE)
    page.click("text=Add the step")
    page.wait_for_selector("#graph [data-step='2']", timeout=120_000)
    page.click("#graph [data-step='2']")
    page.wait_for_selector("#step-2")
    told = page.inner_text("#details")
    assert "proposed by person" in told
    assert HOSTILE in told
    reading.sound()
    page.click("text=Cancel")
    page.wait_for_selector("#job-head .state >> text=Cancelled")


def test_a_series_shows_its_jobs_side_by_side(reading: Opened, jobs: list[str]) -> None:
    page = reading.page
    reading.go("/series")
    reading.sound()
    page.focus('a[href^="/series?name="]')
    page.keyboard.press("Enter")
    page.wait_for_selector("#trend-0 .main-svg")
    reading.sound()
    assert page.inner_text("h1") == SERIES
    titles = page.locator(".trend figcaption").all_inner_texts()
    assert titles[0] == "Rwp / %"
    assert any(title.endswith("a / Å") for title in titles)
    rows = page.locator("main tbody tr")
    assert rows.count() == 2
    assert [rows.nth(i).locator("td").nth(1).inner_text() for i in range(2)] == ["300", "310"]
    assert "(" in rows.nth(0).inner_text(), "figures carry their esd"
    with page.expect_download() as download:
        page.click("text=Table (CSV)")
    lines = Path(download.value.path()).read_text().splitlines()
    assert lines[0].startswith("number,pattern,temperature,unit,verdict")
    assert len(lines) == 3
    assert "\n=" not in "\n".join(lines)
    page.focus(f"a[href='/jobs/{jobs[0]}']")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{jobs[0]}")
    assert page.locator(".crumb").inner_text().endswith(f"Series {SERIES}")
