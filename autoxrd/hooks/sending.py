"""How is one message sent? Signed, to a pinned address, without redirects, within a given time as a whole."""

from __future__ import annotations

import asyncio
import time
from datetime import datetime

import httpx
from standardwebhooks import Webhook

from autoxrd.errors import UserInputError
from autoxrd.hooks.addresses import Destination, Guard
from autoxrd.store.service.outbox import Outcome, Parcel

__all__ = ["new_client", "signatures", "transmit"]

LONGEST_SECONDS = 20.0
"""For an attempt as a whole, so that a receiver which answers byte by byte holds nothing up."""

_GONE = 410


def new_client() -> httpx.AsyncClient:
    """Return a client that follows nothing, and takes no proxy from the environment."""
    return httpx.AsyncClient(timeout=LONGEST_SECONDS, follow_redirects=False, trust_env=False)


def signatures(parcel: Parcel, now: datetime) -> dict[str, str]:
    """Return the headers by which a receiver knows whom a message is from (Standard Webhooks 1.0)."""
    signed = [Webhook(secret).sign(parcel.id, now, parcel.body) for secret in parcel.secrets]
    return {
        "webhook-id": parcel.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signed),
    }


async def transmit(client: httpx.AsyncClient, guard: Guard, parcel: Parcel, now: datetime) -> Outcome:
    """Make one attempt; any failure is told in the outcome."""
    began, status, wish = time.monotonic(), None, ""
    error: str | None = None
    try:
        async with asyncio.timeout(LONGEST_SECONDS):
            place = await asyncio.to_thread(guard.check, parcel.url)
            status, wish = await _answer(client, place, parcel, now)
    except UserInputError as refused:
        error = refused.code
    except TimeoutError:
        error = "timeout"
    except httpx.HTTPError as failure:
        error = type(failure).__name__
    if status is not None and not 200 <= status < 300:
        error = "redirect_refused" if 300 <= status < 400 else "status"
    wait = float(wish) if wish.isdecimal() and len(wish) < 8 else 0.0
    return Outcome(status, error, round(time.monotonic() - began, 3), gone=status == _GONE, wait_seconds=wait)


async def _answer(client: httpx.AsyncClient, place: Destination, parcel: Parcel, now: datetime) -> tuple[int, str]:
    """Send, and return the answer's status and how long it asks to be left alone; its body is not read."""
    headers = {"Host": place.authority, "Content-Type": "application/json", "User-Agent": "autoxrd-webhooks"}
    async with client.stream(
        "POST",
        place.pinned,
        content=parcel.body.encode(),
        headers=headers | signatures(parcel, now),
        extensions={"sni_hostname": place.host},  # the certificate is checked against the name, not the number
    ) as answer:
        return answer.status_code, answer.headers.get("Retry-After", "")
