"""Starting a refinement in a real browser: with a script and without, by mouse, by keyboard, with bad files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .browsing import HOSTILE, Opened, logged_in
from .serving import Service

pytestmark = pytest.mark.browser

BOMB = b"""<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">]><xrdMeasurements xmlns="http://www.xrdml.com/XRDMeasurement/1.5">&c;
</xrdMeasurements>"""
DROP = """files => {
    const transfer = new DataTransfer();
    for (const [name, text] of files) transfer.items.add(new File([text], name));
    for (const type of ["dragenter", "dragover", "drop"])
        document.body.dispatchEvent(new DragEvent(type, { dataTransfer: transfer, bubbles: true, cancelable: true }));
}"""


def test_dropped_files_are_sorted_looked_at_and_submitted(opened: Opened, small_job: tuple[Path, Path]) -> None:
    pattern, cif = small_job
    page = opened.page
    opened.go("/jobs/new")
    opened.sound()
    page.evaluate(DROP, [[path.name, path.read_text()] for path in (cif, pattern)])
    page.wait_for_selector("#preview-plot[data-ready=true]")
    page.wait_for_selector("[data-part=structures] .verdict-line.good")
    assert "2500" in page.inner_text("[data-part=pattern] .findings")
    assert "CaF2" in page.inner_text("[data-part=structures] .findings").replace(" ", "")
    assert page.is_visible("#wavelength-question"), "no file states it"
    opened.sound()
    page.select_option("#f-anode", "Cu")
    assert not page.is_visible("#wavelength-question")
    page.fill("#f-title", HOSTILE)
    page.fill("#f-sample", "fluorite")
    page.click("text=Range, engine and budget")
    page.fill("#f-excluded", "37.5-38.2, 44-45")
    page.fill("#f-steps", "3")
    page.click("#send")
    page.wait_for_url(lambda url: "/jobs/new" not in url)
    job_id = page.url.rpartition("/")[2]
    job = opened.service.job(job_id)
    assert job["title"] == HOSTILE
    assert job["request"]["measurement"]["anode"] == "Cu"
    assert job["request"]["fit"]["excluded_regions_deg"] == [[37.5, 38.2], [44.0, 45.0]]
    assert job["request"]["budgets"]["steps"] == 3
    assert job["request"]["sample"] == {"name": "fluorite"}
    with opened.service.client() as client:
        names = [f["name"] for f in client.get(f"/jobs/{job_id}/files").json() if f["role"] == "input"]
    assert names == ["pattern/pattern.xy", "structure.1/fluorite.cif"]
    opened.expected.append("404")  # until the job has a page, and for what a stub job cannot show


def test_what_cannot_be_read_is_said_at_once(opened: Opened, tmp_path: Path) -> None:
    page = opened.page
    opened.go("/jobs/new")
    name = "<img src=x onerror=window.hacked=1>.cif"
    files = [[name, "no cif at all"], ["bomb.xrdml", BOMB.decode()]]
    page.evaluate(DROP, files)
    page.wait_for_selector("[data-part=structures] .verdict-line.bad")
    page.wait_for_selector("[data-part=pattern] .verdict-line.bad")
    opened.sound()
    page.get_by_role("button", name="Remove <img").click()
    assert page.locator("[data-part=structures] .finding").count() == 0
    page.evaluate(DROP, [["second.instprm", "10 1\n"], ["third.instprm", "10 1\n"]])
    assert "third.instprm was left out" in page.inner_text("#drop-said")


def test_by_keyboard_and_without_a_script(browser: Any, service: Service, small_job: tuple[Path, Path]) -> None:
    visit = Opened.at(browser, service, java_script_enabled=False)
    visit.log_in()
    page = visit.page
    visit.expected.append("422")
    visit.go("/jobs/new")
    page.set_input_files("#f-pattern", str(small_job[0]))
    page.set_input_files("#f-structures", str(small_job[1]))
    page.click("text=Range, engine and budget")
    page.fill("#f-steps", "many")
    page.focus("#send")
    page.keyboard.press("Enter")
    page.wait_for_selector("#problems")
    assert "'many' is no number" in page.inner_text("#problems")
    assert "state the wavelength" in page.inner_text("#problems")
    assert page.locator(".kept input:checked").count() == 2
    page.fill("#f-steps", "2")
    page.fill("#f-wavelength", "1.5406")
    page.focus("#f-steps")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/jobs/new" not in url)
    job = service.job(page.url.rpartition("/")[2])
    assert job["title"] == "pattern.xy"
    assert job["request"]["measurement"]["wavelength"] == "1.5406"
    visit.close()


def test_the_form_fits_a_telephone(browser: Any, service: Service) -> None:
    with logged_in(browser, service, width=390) as visit:
        visit.go("/jobs/new")
        visit.page.click("text=Range, engine and budget")
        visit.sound()


def test_a_form_sent_twice_makes_one_job(service: Service, small_job: tuple[Path, Path]) -> None:
    with service.browsing() as client:
        text = client.get("/jobs/new").text
        fields = {name: text.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("csrf", "key")}
        files = [(n, (p.name, p.read_bytes())) for n, p in zip(("pattern", "structures"), small_job, strict=True)]
        sent = [client.post("/jobs/new", data={**fields, "anode": "Cu"}, files=files) for _ in range(2)]
        assert {answer.status_code for answer in sent} == {303}
        assert len({answer.headers["location"] for answer in sent}) == 1
        job = sent[0].headers["location"].rpartition("/")[2]
        with service.client() as rest:
            done = [entry["action"] for entry in rest.get("/audit").json() if entry["subject"] == job]
        assert done == ["job.submit"], "in the audit log, as if a program had sent it"
        foreign = client.post("/jobs/new", data={**fields, "csrf": "0" * 64}, files=files)
        assert foreign.status_code == 403
        other = {"kept_pattern": "0" * 64 + "/x.xy", "kept_structures": "../../etc/passwd"}
        refused = client.post("/jobs/new", data={**fields, **other})
        assert refused.status_code == 422
        assert "Choose the measured pattern" in refused.text


def test_a_file_that_breaks_the_reader_breaks_nothing_else(service: Service, small_job: tuple[Path, Path]) -> None:
    with service.browsing() as client:
        csrf = client.get("/jobs/new").text.partition('name="csrf" value="')[2].partition('"')[0]

        def check(kind: str, name: str, data: bytes) -> dict[str, Any]:
            answer = client.post("/jobs/new/check", data={"csrf": csrf, "kind": kind}, files={"file": (name, data)})
            assert answer.status_code == 200, answer.text
            return dict(json.loads(answer.text))

        deep = b"data_a\nloop_\n_atom_site_label\n" + b"'" * 2_000_000
        for kind, name, data in (
            ("pattern", "../../../etc/cron.d/x", b"\0" * 1_000_000),
            ("pattern", "x\0y.xy", b"1e999 nan\n" * 1000),
            ("pattern", "bomb.xrdml", BOMB),
            ("structure", "a.cif", deep),
            ("instrument", "i.prm", b"INS " + b"9" * 100_000),
        ):
            found = check(kind, name, data)
            assert not found["ok"], name
            assert "cannot be used" in found["html"]
        assert check("pattern", small_job[0].name, small_job[0].read_bytes())["ok"]
        refused = client.post("/jobs/new/check", data={"csrf": csrf, "kind": "virus"}, files={"file": ("a", b"1")})
        assert refused.status_code == 422


def test_several_patterns_make_a_series(opened: Opened, small_job: tuple[Path, Path]) -> None:
    pattern, cif = small_job
    page = opened.page
    opened.go("/jobs/new")
    names = ["run_25C.xy", "run_100C.xy", "run_300K.xy"]
    page.evaluate(DROP, [[cif.name, cif.read_text()], *([name, pattern.read_text()] for name in names)])
    page.wait_for_selector("[data-part=pattern] .finding:nth-child(3) .verdict-line.good")
    page.select_option("#f-anode", "Cu")
    page.fill("#f-series", "Warming")
    page.fill("#f-series_values", "1, 2")
    opened.sound()
    page.click("#send")
    opened.expected.append("422")
    assert "2 values are given for 3 patterns" in page.inner_text("#problems")
    assert page.locator("[data-part=pattern] .kept input").count() == 3, "what was uploaded is kept"
    page.fill("#f-series_values", "")
    page.click("#send")
    page.wait_for_url("**/series?name=Warming")
    opened.sound()
    rows = page.locator("main tbody tr")
    assert [rows.nth(i).locator("th").inner_text() for i in range(3)] == ["run_25C.xy", "run_300K.xy", "run_100C.xy"]
    assert rows.nth(2).locator("td").nth(1).inner_text() == "373.15"
    with opened.service.client() as client:
        jobs = client.get("/jobs", params={"series": "Warming"}).json()["jobs"]
    assert len(jobs) == 3
    assert {job["request"]["series"]["unit"] for job in jobs} == {"K"}
