"""What a worker does, in the test's own process."""

from __future__ import annotations

from autoxrd.errors import UserInputError
from autoxrd.jobs.local import QUEUES
from autoxrd.jobs.work import Workshop
from autoxrd.store.service import leases
from autoxrd.store.service.database import Database
from autoxrd.store.service.leases import Ended

__all__ = ["worked_off"]


def worked_off(database: Database, shop: Workshop) -> None:
    """Do all steps that there are; a job whose input is refused fails as it does with a worker."""
    while (lease := leases.claim(database, "w", QUEUES)) is not None:
        try:
            done = Ended(queue=shop.advance(lease).queue)
        except UserInputError as error:
            done = Ended(problem={"code": error.code, "detail": error.detail})
        leases.release(database, lease, done)
