"""A scripted expert behind LiteLLM on real patterns: as good as the rules, and replayed without the server.

Each pattern is refined twice and replayed once, minutes each: marked ``slow``. The last figures stand in docs/llm.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autoxrd.agent.exchanges import read_exchanges
from autoxrd.agent.inputs import Request, load_job
from autoxrd.agent.planning import Connection
from autoxrd.agent.run import repeat_job, start_job
from autoxrd.io import name_structures, read_structures
from autoxrd.planners.llm.budget import spent_on
from autoxrd.report.model import ReportInput
from autoxrd.store.graph import Graph
from tests.agent.checks import check_graph
from tests.support.llm_expert import Expert
from tests.support.llm_server import serving
from tests.support.tokens import observation_tokens, prompt_tokens

pytestmark = [pytest.mark.real, pytest.mark.slow]

CASES: dict[str, dict[str, Any]] = {
    "lab-fap": {
        "pattern": "lab-fap-gsas2/FAP.XRA",
        "structures": ["lab-fap-gsas2/fluorapatite.cif"],
        "instrument": "lab-fap-gsas2/INST_XRY.PRM",
    },
    "cpd-1e": {
        "pattern": "qpa-cpd1-open/cpd-1e.prn",
        "structures": [f"qpa-cpd1-open/{stem}.cif" for stem in ("1000017", "zincite", "1000043")],
        "anode": "Cu",
    },
    "garnet": {
        "pattern": "neut-garnet-d1a/garnet.raw",
        "structures": ["neut-garnet-d1a/garnet_YFeAl.cif"],
        "instrument": "neut-garnet-d1a/inst_d1a.prm",
    },
}
JOB_TOKENS = 600_000
"""Budget of a whole job: 60 steps of 8 000 tokens of prompt and 2 000 of answer."""


def _request(case: dict[str, Any], find: Callable[[str], Path], planner: str) -> Request:
    return Request(
        pattern=find(case["pattern"]),
        structures=tuple(find(name) for name in case["structures"]),
        instrument=find(case["instrument"]) if "instrument" in case else None,
        anode=case.get("anode"),
        planner=planner,
        planner_settings={} if planner == "rules" else {"model": "openai/scripted", "answer": "tool"},
    )


def _run(request: Request, out: Path, url: str | None = None) -> ReportInput:
    job, sources = load_job(request)
    return start_job(job, out, sources=sources, connection=Connection(url)).report


@pytest.mark.parametrize("name", CASES)
def test_the_expert_is_as_good_as_the_rules(name: str, shared_file: Callable[[str], Path], tmp_path: Path) -> None:
    case = CASES[name]
    by_rules = _run(_request(case, shared_file, "rules"), tmp_path / "rules")
    request = _request(case, shared_file, "llm")
    structures = name_structures([s for path in request.structures for s in read_structures(path)])
    with serving(Expert(structures)) as server:
        by_model = _run(request, tmp_path / "llm", server.base_url)
        asked = len(server.asked)
    check_graph(tmp_path / "llm")
    with Graph.open(tmp_path / "llm", read_only=True) as graph:
        exchanges = read_exchanges(graph)
        attempts = graph.attempts()
    spent = spent_on(exchanges)
    observed = [observation_tokens(e.request) for e in exchanges]
    whole = [prompt_tokens(e.request) for e in exchanges]
    again = repeat_job(tmp_path / "llm", tmp_path / "again").report
    reports = (by_rules, by_model)
    figures = {
        "rwp_percent": [100 * r.state.quality.rwp for r in reports],
        "gof": [r.state.quality.gof for r in reports],
        "verdict": [r.verdict.value for r in reports],
        "steps": [len(by_rules.steps), len(by_model.steps)],
        "fractions": [[p.weight_fraction.value for p in r.state.phases if p.weight_fraction] for r in reports],
        "requests": asked,
        "largest_observation_tokens": max(observed),
        "largest_prompt_tokens": max(whole),
        "prompt_tokens_of_the_job": sum(whole),
    }
    print(json.dumps({name: figures}))  # noqa: T201  # what docs/llm.md tells
    assert by_model.state.quality.rwp <= 1.01 * by_rules.state.quality.rwp
    assert (by_model.verdict.value == "abstained") == (by_rules.verdict.value == "abstained")
    for mine, theirs in zip(by_model.state.phases, by_rules.state.phases, strict=True):
        assert mine.cell["a"].value == pytest.approx(theirs.cell["a"].value, rel=2e-4)
        if mine.weight_fraction and theirs.weight_fraction:
            assert mine.weight_fraction.value == pytest.approx(theirs.weight_fraction.value, abs=0.01)
    assert spent.calls == asked
    assert all(a.files for a in attempts)
    assert max(observed) < 6_000
    assert sum(whole) < JOB_TOKENS
    assert (again.graph_root, again.state_id) == (by_model.graph_root, by_model.state_id)
