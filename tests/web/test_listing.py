"""Logging in, the list of jobs, and keys, in a real browser."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from .browsing import HOSTILE, Opened, logged_in
from .serving import Service

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def jobs(service: Service) -> list[str]:
    """Thirty jobs: two that ended, one of them with a hostile title, and others that were cancelled."""
    done = [service.submit(title=title, budgets={"steps": 2}) for title in ("corundum 300 K", HOSTILE)]
    for job in done:
        service.finished(job)
    with service.client() as client:
        others = [service.submit(title=f"scan {i:02d}", budgets={"steps": 9}) for i in range(28)]
        for job in others:
            client.post(f"/jobs/{job}/cancel")
            service.finished(job)
    return done + others


def test_only_a_valid_key_opens_the_pages(browser: Any, service: Service) -> None:
    visit = Opened.at(browser, service)
    page = visit.page
    visit.go("/jobs?q=corundum&status=completed")
    assert page.url.startswith(f"{service.url}/login?next=")
    visit.sound()
    visit.expected.append("401")
    page.fill("#key", "axr_" + "0" * 32 + "_" + "a" * 43)
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]")
    assert "not valid" in page.inner_text("[role=alert]")
    page.fill("#key", service.key)
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?q=corundum&status=completed")
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["expires"]) == (True, "Strict", -1)
    assert service.key not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.click("text=Log out")
    page.wait_for_url("**/login")
    page.context.add_cookies([cookie])
    visit.go("/jobs")
    assert page.url == f"{service.url}/login", "the session is over on the server's side too"
    assert visit.complaints == []
    visit.close()


def test_the_list_is_filtered_and_paged(opened: Opened, jobs: list[str]) -> None:
    page = opened.page
    opened.go("/jobs")
    assert page.locator("#job-list tbody tr").count() == 25
    opened.sound()
    page.click("text=Older →")
    page.wait_for_url("**cursor=**")
    assert page.locator("#job-list tbody tr").count() == len(jobs) - 25
    titles = page.locator("#job-list tbody th a").all_inner_texts()
    assert titles[-1] == "corundum 300 K"
    assert HOSTILE in titles
    opened.sound()
    page.select_option("#f-verdict", "accepted")
    page.fill("#f-q", "CORUNDUM")
    page.click("text=Apply")
    page.wait_for_url("**q=CORUNDUM**")
    assert page.locator("#job-list tbody th a").all_inner_texts() == ["corundum 300 K"]
    assert page.inner_text("#job-list tbody .state") == "Accepted"
    page.fill("#f-q", HOSTILE)
    page.click("text=Apply")
    page.wait_for_selector(f"text={HOSTILE} >> visible=true")
    assert page.input_value("#f-q") == HOSTILE
    opened.sound()
    page.fill("#f-q", "no such job")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=No job fits these filters")
    opened.sound()


def test_the_list_fits_a_telephone(browser: Any, service: Service, jobs: list[str]) -> None:
    with logged_in(browser, service, width=390) as visit:
        assert visit.page.locator("#job-list tbody tr").count() == 25
        visit.sound()


def test_the_list_keeps_itself_up_to_date(opened: Opened, service: Service, jobs: list[str]) -> None:
    job = service.submit(title="a long one", budgets={"steps": 2000})
    opened.go("/jobs?status=open")
    state = opened.page.locator("#job-list tbody .state")
    assert state.inner_text() in {"Queued", "Running"}
    with service.client() as client:
        client.post(f"/jobs/{job}/cancel")
    opened.page.wait_for_selector("text=No job fits these filters")


def test_errors_are_pages(opened: Opened) -> None:
    opened.expected += ["404", "422"]
    opened.go("/nothing/here")
    assert "There is nothing at this address" in opened.page.inner_text("main")
    opened.sound()
    opened.go("/jobs?cursor=../../x")
    assert "does not fit" in opened.page.inner_text("main")


def test_another_site_s_form_does_nothing(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"Accept": "text/html"}) as client:
        foreign = {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"}
        assert client.post("/login", data={"key": service.key}, headers=foreign).status_code == 403
        assert client.post("/login", data={"key": service.key}).status_code == 403, "nor one that says nothing"
        own = {"Sec-Fetch-Site": "same-origin"}
        made = client.post("/login", data={"key": service.key, "next": "//elsewhere.example"}, headers=own)
        assert made.headers["location"] == "/jobs"
        assert client.get("/jobs").status_code == 200
        assert client.post("/logout", data={"csrf": "0" * 64}, headers=own).status_code == 403
        assert client.post("/logout", headers=foreign).status_code == 403
        assert client.get("/jobs").status_code == 200, "still logged in"
        assert client.get("/api/v1/jobs").status_code == 200, "the cookie opens what reads"
        assert client.post("/api/v1/api-keys", json={"name": "x"}, headers=own).status_code == 401, "and nothing else"


def test_pages_say_what_may_run_on_them(service: Service) -> None:
    with httpx.Client(base_url=service.url, headers={"Accept": "text/html"}) as client:
        answer = client.get("/login")
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == "'self'"
        assert policy["frame-ancestors"] == "'none'"
        assert answer.headers["cache-control"] == "no-store"
        for name in ("web.css/../../pyproject.toml", "..%2f..%2fpyproject.toml", "README.md", "web.css%00"):
            assert client.get(f"/static/{name}").status_code == 404, name


def test_revoking_a_key_ends_its_sessions(service: Service) -> None:
    with service.client() as admin, httpx.Client(base_url=service.url, headers={"Accept": "text/html"}) as client:
        key = admin.post("/api-keys", json={"name": "laptop"}).json()
        client.post("/login", data={"key": key["token"]}, headers={"Sec-Fetch-Site": "same-origin"})
        assert client.get("/jobs").status_code == 200
        assert admin.delete(f"/api-keys/{key['id']}").status_code == 204
        assert client.get("/jobs").headers["location"].startswith("/login")


def test_keys_are_made_used_and_revoked(opened: Opened) -> None:
    page = opened.page
    opened.go("/keys")
    opened.sound()
    page.fill("#f-name", HOSTILE)
    page.select_option("#f-days", "1")
    page.click("text=Make the key")
    page.wait_for_selector("#token")
    key = page.input_value("#token")
    opened.sound()
    with opened.service.client(key) as client:
        assert client.get("/jobs").status_code == 200
        assert client.get("/api-keys").status_code == 403, "it has the scopes that were chosen"
        page.get_by_role("button", name="Revoke <img").click()
        page.wait_for_selector("text=Revoked")
        assert client.get("/jobs").status_code == 401
    assert key not in page.content()
    assert page.get_by_text("this browser").count() == 1
    opened.expected.append("422")
    page.evaluate("document.querySelectorAll('[name=scopes]').forEach(box => { box.checked = false })")
    page.fill("#f-name", "nothing")
    page.click("text=Make the key")
    page.wait_for_selector("text=Choose what the key may be used for.")
