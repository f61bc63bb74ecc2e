"""report.html: one file that opens anywhere, asks for nothing from the network and runs only our own scripts."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from autoxrd.report.details import Report
from autoxrd.report.figures import PlotSettings, fit_figure, step_figure
from autoxrd.report.graphview import draw_graph
from autoxrd.report.model import ReportInput
from autoxrd.report.stepview import gate_matrix, step_views
from autoxrd.report.view import page_view
from autoxrd.report.words import sentence

__all__ = ["asset", "content_policy", "environment", "json_for_html", "render_html"]

_SCRIPTS = ("plotly-basic.min.js", "plot.js", "page.js")
_HTML_UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""Inside a script element only these can end it or change how it is read; in JSON they occur in strings alone."""


def json_for_html(data: Any) -> Markup:
    """Serialise for a ``<script type="application/json">``: nothing in it can close the element."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_HTML_UNSAFE))  # noqa: S704 - the unsafe characters are gone


@cache
def asset(name: str) -> str:
    """Return a file of ours that is embedded in pages."""
    return (resources.files("autoxrd.report") / "assets" / name).read_text(encoding="utf-8")


@cache
def environment() -> jinja2.Environment:
    """Return the environment of our templates: everything is escaped, a missing name is an error."""
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("autoxrd.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["sentence"] = sentence
    return made


def content_policy(scripts: list[str]) -> str:
    """Name the scripts by hash: one that a hostile file name smuggled in would not run."""
    hashes = " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in scripts)
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def render_html(inp: ReportInput, report: Report, settings: PlotSettings | None = None) -> str:
    """Render the page.

    Args:
        inp: the report's input.
        report: report.json of the same input.
        settings: how much data the page carries.
    """
    scripts = [asset(name) for name in _SCRIPTS]
    views = step_views(inp)
    shown = settings or PlotSettings()
    fits = [fit_figure(seen, shown) for seen in inp.histograms.values()]
    data: dict[str, Any] = {"fit": fits[0] if fits else fit_figure(inp, shown), "steps": step_figure(inp)}
    if fits:
        data["fits"] = fits
    # The assets are ours and reviewed; everything else on the page goes through the template's escaping.
    trusted = [Markup(s) for s in scripts]  # noqa: S704
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            **page_view(inp, report),
            steps=views,
            matrix=gate_matrix(views),
            graph=draw_graph(inp),
            fit=data["fit"],
            data=json_for_html(data),
            css=Markup(asset("report.css")),  # noqa: S704
            scripts=trusted,
            content_policy=content_policy(scripts),
        )
    )
