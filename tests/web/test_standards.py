"""What a form says of standards, certified cells and a profile match: read, refused by field, submitted, shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from autoxrd.errors import UserInputError
from autoxrd.jobs.checking import Finding
from autoxrd.jobs.request import ExternalStandard, KnownCell, Standard
from autoxrd.web.phases import check_phases
from autoxrd.web.wishes import field_of, request_from

from .browsing import logged_in
from .serving import Service

JOB = "0199aaaa-0000-7000-8000-00000000000a"
CELL_ONLY = b"""data_cell
_cell_length_a 5.4626
_cell_length_b 5.4626
_cell_length_c 5.4626
_cell_angle_alpha 90
_cell_angle_beta 90
_cell_angle_gamma 90
_space_group_name_H-M_alt 'F m -3 m'
"""


def test_the_fields_become_the_request_that_a_program_would_send() -> None:
    filled = {"standard": "corundum", "standard_percent": "20 %", "standard_crystallinity": "98,5"}
    filled["known_cells"] = "Si; corundum = 4.7591, 12.9917 ;"
    request = request_from(filled)
    assert request.standard == Standard(phase="corundum", weight_percent=20.0, crystallinity_percent=98.5)
    assert request.known_cells == (KnownCell(phase="Si"), KnownCell(phase="corundum", cell=(4.7591, 12.9917)))
    assert not request.fit.profile_match
    match = request_from({"profile_match": "yes", "known_cells": "Si=5.43109"})
    assert match.fit.profile_match
    assert match.standard is None
    assert request_from({}).standard is None


@pytest.mark.parametrize(
    ("filled", "field", "word"),
    [
        ({"standard": "corundum"}, "standard_percent", "weighed in"),
        ({"standard_percent": "20"}, "standard", "name the phase"),
        ({"standard": "a", "standard_percent": "100"}, "standard_percent", "below 100 %"),
        ({"standard": "a", "standard_percent": "-3"}, "standard_percent", "above 0"),
        ({"standard": "a", "standard_percent": "nan"}, "standard_percent", "above 0"),
        ({"standard": "a", "standard_percent": "a fifth"}, "standard_percent", "is no number"),
        ({"standard": "a", "standard_percent": "2", "standard_crystallinity": "101"}, "standard_crystallinity", "most"),
        ({"known_cells": "Si=wide"}, "known_cells", "Si=5.43109"),
        ({"known_cells": "Si; =5.4"}, "known_cells", "A certified cell needs a phase"),
        ({"known_cells": "Si=-5.4"}, "known_cells", "'Si=-5.4'"),
        ({"profile_match": "yes", "standard": "a", "standard_percent": "2"}, "standard", "untick"),
        ({"mass_absorption": "35"}, "external_job", "give its id"),
        ({"external_job": "corundum-job"}, "external_job", "is no job"),
        ({"external_job": f"javascript:{'0' * 40}"}, "external_job", "is no job"),
        ({"external_job": JOB, "mass_absorption": "heavy"}, "mass_absorption", "is no number"),
        ({"external_job": JOB, "external_crystallinity": "0"}, "external_crystallinity", "above 0"),
    ],
)
def test_what_cannot_be_read_names_its_field(filled: dict[str, str], field: str, word: str) -> None:
    with pytest.raises(UserInputError) as caught:
        request_from(filled)
    assert caught.value.context["field"] == field
    assert word in caught.value.detail


@pytest.mark.parametrize(
    "typed",
    [
        JOB,
        JOB.upper(),
        f"/jobs/{JOB}",
        f"http://127.0.0.1:8417/jobs/{JOB}",
        f"https://x.org/jobs/{JOB}/report?step=3#fit",
    ],
)
def test_an_external_standard_is_named_by_id_or_address(typed: str) -> None:
    filled = {"external_job": typed, "external_crystallinity": "98,5", "intensity_ratio": "2,5"}
    request = request_from(filled | {"composition": "Al2O3:50,SiO2:50"})
    wanted = ExternalStandard(job=JOB, crystallinity_percent=98.5, composition="Al2O3:50,SiO2:50", intensity_ratio=2.5)
    assert request.external_standard == wanted
    assert request_from({"external_job": typed, "mass_absorption": "35.2"}).external_standard == ExternalStandard(
        job=JOB, mass_absorption_cm2_g=35.2
    )


def test_a_fault_of_the_request_has_a_field() -> None:
    assert field_of(("known_cells", 3, "cell", 0)) == "known_cells"
    assert field_of(("budgets", "wall_seconds")) == "minutes"
    assert field_of(("title",)) == "title"
    assert field_of((), "profile_match_planner") == "planner"
    assert field_of((), "engine_unavailable") == "engine"
    assert field_of(()) == "request"


def _finding(file: str, *phases: dict[str, Any]) -> Finding:
    return Finding("structure", file, {"phases": list(phases)})


@pytest.mark.parametrize(
    ("filled", "field", "word"),
    [
        ({"standard": "quartz", "standard_percent": "20"}, "standard", "name one of fluorite, corundum, fluorite_2"),
        ({"known_cells": "quartz"}, "known_cells", "is none of the phases"),
        ({"known_cells": "corundum=4,7591"}, "known_cells", "is not that of its structure"),
        ({"known_cells": "fluorite.cif=5,4626"}, "known_cells", "1 free cell parameters, not 2"),
        ({"known_cells": "corundum; 9000715=4.7591,12.9917"}, "known_cells", "more than once"),
        (
            {"known_cells": "fluorite; 9000715=4.7591,12.9917", "standard": "fluorite_2", "standard_percent": "1"},
            "",
            "",
        ),
    ],
)
def test_phases_and_cells_are_held_against_the_files(filled: dict[str, str], field: str, word: str) -> None:
    fluorite = {"name": "fluorite", "space_group": "F m -3 m", "free_cell": {"a": 5.4626}}
    corundum = {"name": "corundum", "space_group": "R -3 c:H", "free_cell": {"a": 4.7588, "c": 12.992}}
    read = [_finding("fluorite.cif", fluorite), _finding("9000715.cif", corundum), _finding("other.cif", fluorite)]
    wrong = check_phases(request_from(filled), read)
    assert list(wrong) == ([field] if field else [])
    assert word in wrong.get(field, "")
    broken = Finding("structure", "x.cif", None, "cif_malformed", "is no CIF")
    assert check_phases(request_from(filled), [*read, broken]) == {}, "the file is what to put right first"


def _fields(client: httpx.Client) -> dict[str, str]:
    text = client.get("/jobs/new").text
    return {name: text.partition(f'name="{name}" value="')[2].partition('"')[0] for name in ("csrf", "key")}


def test_a_form_asks_for_standard_and_cells_and_keeps_them(service: Service, small_job: tuple[Path, Path]) -> None:
    files = [(n, (p.name, p.read_bytes())) for n, p in zip(("pattern", "structures"), small_job, strict=True)]
    with service.browsing() as client:
        fields = _fields(client)
        filled = {"anode": "Cu", "standard": "corundum", "standard_percent": "20", "known_cells": "fluorite=5,43"}
        asked = client.post("/jobs/new", data={**fields, **filled}, files=files)
        assert asked.status_code == 422
        assert "name one of fluorite" in asked.text
        assert "1 free cell parameters, not 2" in asked.text
        assert '<details id="standards" open>' in asked.text
        assert 'value="fluorite=5,43"' in asked.text
        assert 'id="e-standard"' in asked.text
        filled |= {"standard": "fluorite", "known_cells": "fluorite=5.465"}
        sent = client.post("/jobs/new", data={**fields, **filled}, files=files)
        assert sent.status_code == 303
        page = client.get(sent.headers["location"]).text
    assert "fluorite, 20 % by weight" in page
    assert "fluorite: 5.465" in page
    request = service.job(sent.headers["location"].rpartition("/")[2])["request"]
    assert request["standard"] == {"phase": "fluorite", "weight_percent": 20.0, "crystallinity_percent": 100.0}
    assert request["known_cells"] == [{"phase": "fluorite", "cell": [5.465]}]


def test_a_profile_match_takes_a_cif_without_atoms(service: Service, small_job: tuple[Path, Path]) -> None:
    files = [("pattern", ("p.xy", small_job[0].read_bytes())), ("structures", ("cell.cif", CELL_ONLY))]
    with service.browsing() as client:
        fields = _fields(client) | {"anode": "Cu"}
        refused = client.post("/jobs/new", data=fields, files=files)
        assert refused.status_code == 422
        assert "ask for a profile match" in refused.text
        asked = client.post("/jobs/new", data={**fields, "profile_match": "yes", "planner": "llm"}, files=files)
        assert asked.status_code == 422
        assert '<li><a href="#f-planner">The planner' in asked.text
        assert "<details open><summary>Range, engine and budget" in asked.text
        checked = {"csrf": fields["csrf"], "kind": "lattice"}
        looked = client.post("/jobs/new/check", data=checked, files={"file": ("cell.cif", CELL_ONLY)}).json()
        assert looked["ok"]
        assert "its atoms do not count" in looked["html"]
        sent = client.post("/jobs/new", data={**fields, "profile_match": "yes", "known_cells": "cell"}, files=files)
        assert sent.status_code == 303, sent.text
        page = client.get(sent.headers["location"]).text
    assert "lines of the cells, no structural model" in page
    assert service.job(sent.headers["location"].rpartition("/")[2])["request"]["fit"]["profile_match"]


def test_a_standard_measured_apart_is_an_earlier_job(service: Service, small_job: tuple[Path, Path]) -> None:
    standard = service.submit(title="corundum", budgets={"steps": 1})
    assert service.finished(standard)["state"] == "completed"
    files = [(n, (p.name, p.read_bytes())) for n, p in zip(("pattern", "structures"), small_job, strict=True)]
    with service.browsing() as client:
        fields = _fields(client) | {"anode": "Cu"}
        for filled, field, word in (
            ({"external_job": JOB}, "external_job", "you have no job"),
            ({"external_job": standard, "composition": "Al2O3:60"}, "composition", "60 %"),
            ({"external_job": standard, "mass_absorption": "-1"}, "mass_absorption", "greater than 0"),
            (
                {"external_job": standard, "mass_absorption": "1", "composition": "SiO2:100"},
                "composition",
                "of the two",
            ),
            ({"external_job": standard, "profile_match": "yes"}, "external_job", "no amounts"),
            ({"external_job": standard, "standard": "fluorite", "standard_percent": "2"}, "external_job", "Both"),
            ({"external_job": standard, "intensity_ratio": "0"}, "intensity_ratio", "greater than"),
        ):
            asked = client.post("/jobs/new", data={**fields, **filled}, files=files)
            assert asked.status_code == 422, filled
            said = asked.text.partition(f'id="e-{field}">')[2].partition("</p>")[0]
            assert word in said, (filled, said)
            assert '<details id="standards" open>' in asked.text
        filled = {"external_job": f"{service.url}/jobs/{standard}?step=1", "composition": "Al2O3:60,CaSiO3:40"}
        sent = client.post("/jobs/new", data={**fields, **filled}, files=files)
        assert sent.status_code == 303, sent.text
        page = client.get(sent.headers["location"]).text
        assert f'<a href="/jobs/{standard}">' in page
        assert "Al2O3:60,CaSiO3:40" in page
    wanted = service.job(sent.headers["location"].rpartition("/")[2])["request"]["external_standard"]
    assert (wanted["job"], wanted["composition"]) == (standard, "Al2O3:60,CaSiO3:40")
    assert wanted["mass_absorption_cm2_g"] is None


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_section_is_filled_in_by_hand(
    browser: Any, service: Service, small_job: tuple[Path, Path], width: int
) -> None:
    with logged_in(browser, service, width=width) as visit:
        page = visit.page
        visit.go("/jobs/new")
        page.set_input_files("#f-pattern", str(small_job[0]))
        page.set_input_files("#f-structures", str(small_job[1]))
        page.wait_for_selector("[data-part=structures] .verdict-line.good")
        page.select_option("#f-anode", "Cu")
        page.click("text=Standards and kind of fit")
        visit.sound()
        page.check("#f-profile_match")
        page.wait_for_selector("text=its atoms do not count")
        page.fill("#f-standard", "fluorite")
        page.fill("#f-standard_percent", "20")
        visit.expected.append("422")
        page.click("#send")
        page.wait_for_selector("#e-standard")
        assert "untick the profile match" in page.inner_text("#e-standard")
        assert page.is_checked("#f-profile_match")
        visit.sound()
        page.uncheck("#f-profile_match")
        page.fill("#f-known_cells", "fluorite")
        page.click("#send")
        page.wait_for_url(lambda url: "/jobs/new" not in url)
        request = service.job(page.url.rpartition("/")[2])["request"]
        assert request["standard"]["weight_percent"] == 20.0
        assert request["known_cells"] == [{"phase": "fluorite", "cell": []}]
        visit.expected.append("404")  # what a stub job cannot show
