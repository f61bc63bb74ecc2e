"""From where on is an owner's share counted? Credit is earned by waiting, never by being away or alone.

Jobs are taken from the owner who was served least (`autoxrd.store.service.leases`). The count alone would be unfair:
whoever had nothing to do would come back far behind the others and keep them waiting, and whoever used a machine that
nobody else wanted would pay for it later. So an owner of whom no job waits starts level when one comes in: at the
least of those who have jobs waiting, or, where nobody waits, at the most that anybody was served. This is the virtual
start time of start-time fair queueing (Goyal, Vin, Cheng 1997, doi:10.1109/90.649569).
"""

from __future__ import annotations

from sqlalchemy import BindParameter, bindparam, exists, func, select, update

from autoxrd.domain.lifecycle import CLAIMABLE
from autoxrd.store.models import table_of
from autoxrd.store.service.database import Transaction
from autoxrd.store.service.models import OwnerRow, ServiceJobRow

__all__ = ["level"]

# Built once, of tables: each submission asks the first of them.
_JOBS, _OWNERS = table_of(ServiceJobRow), table_of(OwnerRow)
_WAITS = (_JOBS.c.state.in_([s.value for s in CLAIMABLE]), _JOBS.c.lease_holder.is_(None))
_OWNER: BindParameter[str] = bindparam("owner")
_JOB: BindParameter[str] = bindparam("job")
_OTHERS = select(exists().where(_JOBS.c.owner_id == _OWNER, _JOBS.c.id != _JOB, *_WAITS))
_LEAST = select(func.min(_OWNERS.c.served)).where(
    _OWNERS.c.id != _OWNER, exists().where(_JOBS.c.owner_id == _OWNERS.c.id, *_WAITS)
)
_MOST = select(func.max(_OWNERS.c.served))
_RAISE = (
    update(_OWNERS)
    .where(_OWNERS.c.id == _OWNER, _OWNERS.c.served < bindparam("start"))
    .values(served=bindparam("start"))
)


def level(session: Transaction, owner_id: str, job_id: str) -> None:
    """Let an owner start level with the others where this job is the only one of theirs that waits.

    Args:
        session: the transaction that queues the job. It locks the owner's row, so it is called late.
        owner_id: whose job it is.
        job_id: the job that comes in; whether it is written already does not matter.
    """
    if session.scalar(_OTHERS, {"owner": owner_id, "job": job_id}):
        return
    start = session.scalar(_LEAST, {"owner": owner_id})
    if start is None:
        start = session.scalar(_MOST)
    session.execute(_RAISE, {"owner": owner_id, "start": start})
