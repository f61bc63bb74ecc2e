"""How does somebody without a key get one file for a short time? By a link that the service has signed.

The link says which file of which job, and until when; a MAC over that with a key of the service (HMAC-SHA-256, 256
random bits, kept in its database) makes it the service's. A link cannot be taken back, except with the job.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from autoxrd.errors import NotFound
from autoxrd.primitives import canonical_json
from autoxrd.store.service.database import Database
from autoxrd.store.service.models import SecretRow

__all__ = ["Grant", "read_link", "signed_link"]

NAME = "links"


@dataclass(frozen=True, slots=True)
class Grant:
    """What a link allows.

    Args:
        name: file of the report.
        until: POSIX seconds.
    """

    job_id: str
    name: str
    until: int


def signed_link(database: Database, job_id: str, name: str, lifetime: timedelta) -> tuple[str, datetime]:
    """Return a token for one file of a job's report, and until when it is valid."""
    until = (datetime.now(UTC) + lifetime).replace(microsecond=0)
    text = _coded(canonical_json([job_id, name, int(until.timestamp())]).encode())
    return f"{text}.{_coded(_mac(_key(database), text))}", until


def read_link(database: Database, token: str, *, now: datetime | None = None) -> Grant:
    """Return what a token allows.

    Raises:
        NotFound: ``link_invalid``, forged, damaged or past its time: which of them is not said.
    """
    text, _, mac = token.partition(".")
    if token.isascii() and hmac.compare_digest(mac, _coded(_mac(_key(database), text))):
        try:
            job_id, name, until = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, binascii.Error):
            until = 0
        if until > (now or datetime.now(UTC)).timestamp():
            return Grant(job_id, name, until)
    raise NotFound("link_invalid", "This link is not valid, or no longer: ask who sent it for a new one.")


def _mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def _coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _key(database: Database) -> bytes:
    """Return the key, made by whoever needs it first."""
    query = select(SecretRow.secret).where(SecretRow.name == NAME)
    with database.reading() as session:
        found = session.scalar(query)
    if found is None:
        try:
            with database.writing() as session:
                session.add(SecretRow(name=NAME, secret=secrets.token_hex(32)))
        except IntegrityError:  # another process was faster
            pass
        with database.reading() as session:
            found = session.scalars(query).one()
    return bytes.fromhex(found)
