"""What an undisturbed run of a stub job leaves: computed in this process, with no service around it."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from autoxrd.jobs.local import QUEUES
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.files import job_file
from autoxrd.store.service.leases import Ended

from .factory import queued

STUB = Path(__file__).resolve().parents[2] / "benchmarks" / "service" / "stub_host.py"


def load_stub() -> ModuleType:
    """Return the stub's module; its steps take no time here."""
    spec = importlib.util.spec_from_file_location("stub_host", STUB)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look themselves up there
    spec.loader.exec_module(module)
    module.STEP_SECONDS = 0.0  # type: ignore[attr-defined]
    return module


@cache
def undisturbed(title: str, steps: int) -> str:
    """Return the SHA-256 of the graph.json that this job must leave."""
    module = load_stub()
    with TemporaryDirectory() as folder:
        place = Path(folder)
        with Database(f"sqlite:///{place / 's.sqlite'}", place / "artifacts", durable=False) as database:
            database.migrate()
            job = queued(database, title=title, steps=steps)
            stub = module.Stub(database)
            while (lease := leases.claim(database, "alone", QUEUES)) is not None:
                done = stub.advance(lease)
                leases.release(database, lease, Ended(queue=done.queue))
            return job_file(database, job, "report", "graph.json").sha256
