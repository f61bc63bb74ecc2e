"""report.html: one file, no network."""

from __future__ import annotations

from autoxrd.report.details import Report
from autoxrd.report.model import ReportInput

__all__ = ["render_html"]


def render_html(inp: ReportInput, report: Report) -> str:
    """Render the page."""
    import html

    return f"<!doctype html><title>AutoXRD</title><pre>{html.escape(report.model_dump_json(indent=1))}</pre>"
