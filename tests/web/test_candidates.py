"""Candidates on the page for new refinements: chosen, looked at, kept, refused by field, submitted, shown."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import pytest

from autoxrd.jobs.checking import Finding
from autoxrd.web.phases import check_phases
from autoxrd.web.wishes import field_of, request_from
from tests.agent.mixture import HALITE

from .browsing import logged_in
from .serving import Service, started

File = tuple[str, tuple[str, bytes]]
BROKEN = ("broken.cif", b"no cif at all")


def _pattern(small_job: tuple[Path, Path]) -> File:
    return "pattern", (small_job[0].name, small_job[0].read_bytes())


def _cifs(part: str, small_job: tuple[Path, Path]) -> list[File]:
    return [(part, ("fluorite.cif", small_job[1].read_bytes())), (part, ("halite.cif", HALITE.encode()))]


def _fields(client: httpx.Client) -> dict[str, str]:
    text = client.get("/jobs/new").text
    return {name: text.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("csrf", "key")}


def _said(answer: httpx.Response, field: str) -> str:
    assert answer.status_code == 422, answer.text
    return answer.text.partition(f'id="e-{field}">')[2].partition("</p>")[0]


def _inputs(service: Service, job_id: str) -> list[str]:
    with service.client() as client:
        return [f["name"] for f in client.get(f"/jobs/{job_id}/files").json() if f["role"] == "input"]


def test_a_standard_may_be_a_candidate_and_a_certified_cell_not() -> None:
    fluorite = {"name": "fluorite", "space_group": "F m -3 m", "free_cell": {"a": 5.4626}}
    halite = {"name": "halite", "space_group": "F m -3 m", "free_cell": {"a": 5.6402}}
    first, second = (Finding("structure", f"{p['name']}.cif", {"phases": [p]}) for p in (fluorite, halite))
    weighed = request_from({"standard": "halite", "standard_percent": "20"})
    assert check_phases(weighed, [first], [second]) == {}
    assert check_phases(weighed, [], [second]) == {}
    assert "name one of fluorite" in check_phases(weighed, [first])["standard"]
    cell = request_from({"known_cells": "halite"})
    assert check_phases(cell, [second], [first]) == {}
    assert "name one of fluorite" in check_phases(cell, [first], [second])["known_cells"]
    assert "only candidates are given" in check_phases(cell, [], [second])["known_cells"]
    unread = Finding("structure", "x.cif", None, "cif_malformed", "is no CIF")
    assert check_phases(cell, [first], [unread]) == {}, "the file is what to put right first"
    assert field_of((), "profile_match_candidates") == "candidates"


def test_candidates_are_kept_and_submitted(service: Service, small_job: tuple[Path, Path]) -> None:
    with service.browsing() as client:
        fields = _fields(client)
        files = [_pattern(small_job), *_cifs("candidates", small_job)]
        asked = client.post("/jobs/new", data=fields, files=files)
        assert "state the wavelength" in _said(asked, "anode")
        assert _said(asked, "structures") == "", "with candidates no structure is needed"
        kept = {f"kept_{part}": re.findall(rf'name="kept_{part}" value="([^"]+)" checked', asked.text) for part in
                ("pattern", "structures", "candidates")}  # fmt: skip
        assert [len(found) for found in kept.values()] == [1, 0, 2]
        more: list[File] = [("structures", ("mine.cif", small_job[1].read_bytes()))]
        sent = client.post("/jobs/new", data={**fields, **kept, "anode": "Cu"}, files=more)
        assert sent.status_code == 303, sent.text
        page = client.get(sent.headers["location"]).text
        job_id = sent.headers["location"].rpartition("/")[2]
        given = client.get(f"/jobs/{job_id}/inputs/candidate.2/halite.cif")
        assert given.content == HALITE.encode()
    names = ["candidate.1/fluorite.cif", "candidate.2/halite.cif", "pattern/pattern.xy", "structure.1/mine.cif"]
    assert _inputs(service, job_id) == names
    assert re.search(r'Candidate 2</th><td><a href="[^"]+">halite\.cif</a>', page)


def test_every_job_of_a_series_has_the_candidates(service: Service, small_job: tuple[Path, Path]) -> None:
    data = small_job[0].read_bytes()
    files: list[File] = [("pattern", (f"run_{kelvin}K.xy", data)) for kelvin in (300, 310)]
    with service.browsing() as client:
        fields = {**_fields(client), "anode": "Cu", "series": "Candidates", "steps": "1"}
        sent = client.post("/jobs/new", data=fields, files=[*files, *_cifs("candidates", small_job)])
        assert sent.status_code == 303, sent.text
    with service.client() as rest:
        jobs = rest.get("/jobs", params={"series": "Candidates"}).json()["jobs"]
    given = sorted(_inputs(service, job["id"]) for job in jobs)
    cifs = ["candidate.1/fluorite.cif", "candidate.2/halite.cif"]
    assert given == [[*cifs, f"pattern/run_{kelvin}K.xy"] for kelvin in (300, 310)]


def test_what_cannot_be_is_said_in_its_field(service: Service, small_job: tuple[Path, Path]) -> None:
    pattern, cif = _pattern(small_job), ("a.cif", small_job[1].read_bytes())
    candidate: File = ("candidates", cif)
    with service.browsing() as client:
        fields = {**_fields(client), "anode": "Cu"}
        nothing = client.post("/jobs/new", data=fields, files=[pattern])
        assert "at least one CIF" in _said(nothing, "structures")
        broken = client.post("/jobs/new", data=fields, files=[pattern, candidate, ("candidates", BROKEN)])
        assert "is no" in _said(broken, "candidates") or "cannot" in _said(broken, "candidates")
        match = client.post("/jobs/new", data={**fields, "profile_match": "yes"}, files=[pattern, candidate])
        assert "do not go with a profile match" in _said(match, "candidates")
        cell = client.post("/jobs/new", data={**fields, "known_cells": "a"}, files=[pattern, candidate])
        assert "only candidates are given" in _said(cell, "known_cells")
        many: list[File] = [("structures", cif)] * 26 + [candidate] * 25
        refused = client.post("/jobs/new", data=fields, files=[pattern, *many])
        assert "at most 50 structures and candidates" in _said(refused, "candidates")


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_candidates_are_chosen_by_hand(
    browser: Any, service: Service, small_job: tuple[Path, Path], tmp_path: Path, width: int
) -> None:
    (tmp_path / "halite.cif").write_text(HALITE)
    with logged_in(browser, service, width=width) as visit:
        page = visit.page
        visit.go("/jobs/new")
        page.set_input_files("#f-pattern", str(small_job[0]))
        page.set_input_files("#f-candidates", [str(small_job[1]), str(tmp_path / "halite.cif")])
        page.wait_for_selector("[data-part=candidates] .finding:nth-child(2) .verdict-line.good")
        assert page.locator("[data-part=structures] .finding").count() == 0
        visit.sound()
        page.get_by_role("button", name="Remove fluorite.cif").click()
        page.locator("[data-part=candidates] .finding").nth(1).wait_for(state="detached")
        page.wait_for_selector("[data-part=candidates] .verdict-line.good")
        page.click("#send")
        visit.expected.append("422")
        page.wait_for_selector("#e-anode")
        page.set_input_files("#f-candidates", str(small_job[1]))
        page.wait_for_selector("[data-part=candidates] .findings .verdict-line.good")
        assert page.locator("[data-part=candidates] .kept input:checked").count() == 1, "the other one stays"
        page.select_option("#f-anode", "Cu")
        page.click("#send")
        page.wait_for_url(lambda url: "/jobs/new" not in url)
        job_id = page.url.rpartition("/")[2]
        page.wait_for_selector("text=Candidate 2")
        visit.sound()
        visit.expected.append("404")  # for what a stub job cannot show
    assert _inputs(service, job_id) == ["candidate.1/halite.cif", "candidate.2/fluorite.cif", "pattern/pattern.xy"]


@pytest.mark.real
def test_a_job_of_the_page_finds_its_phase(tmp_path: Path, small_job: tuple[Path, Path]) -> None:
    with started(tmp_path, stub=False) as real:
        with real.browsing() as client:
            fields = {**_fields(client), "anode": "Cu", "steps": "2"}
            files = [_pattern(small_job), *_cifs("candidates", small_job)[::-1]]
            sent = client.post("/jobs/new", data=fields, files=files)
            assert sent.status_code == 303, sent.text
            job_id = sent.headers["location"].rpartition("/")[2]
            done = real.finished(job_id, 300.0)
            assert done["state"] == "completed", done
            page = client.get(f"/jobs/{job_id}").text
        with real.client() as rest:
            report = rest.get(f"/jobs/{job_id}/report.json").json()
    assert [phase["name"] for phase in report["phases"]] == ["fluorite"]
    assert re.search(r'Candidate 1</th><td><a href="[^"]+">halite\.cif</a>', page)
