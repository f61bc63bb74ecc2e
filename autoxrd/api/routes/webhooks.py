"""Webhooks: register, list, rotate the secret, look at deliveries, send one again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel, ConfigDict, Field

from autoxrd.api.auth import HookManager
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.hooks.addresses import LONGEST_URL
from autoxrd.store.service import audit, outbox, webhooks

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/webhooks", tags=["webhooks"])

Kind = Literal["job.accepted", "step.recorded", "job.completed", "job.abstained", "job.failed"]
_Id = Annotated[str, Path(pattern=r"^[0-9a-f-]{36}$")]


class WebhookRequest(BaseModel):
    """Where events are to be sent."""

    model_config = ConfigDict(extra="forbid")

    url: Annotated[str, Field(min_length=1, max_length=LONGEST_URL)]
    """`https` and a public address."""
    kinds: Annotated[list[Kind], Field(min_length=1)] = ["job.completed", "job.abstained", "job.failed"]
    every_job: bool = True
    """False: only jobs whose request names this address as `callback`."""


class RotateRequest(BaseModel):
    """How a secret is replaced."""

    model_config = ConfigDict(extra="forbid")

    overlap_seconds: Annotated[float, Field(ge=0.0, le=7 * 86400.0)] = 86400.0
    """So long messages are signed with the last secret too."""


class WebhookOut(BaseModel):
    """A webhook without its secrets; `secrets` says how many are valid."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    url: str
    kinds: list[str]
    every_job: bool
    created_at: str
    disabled_at: str | None
    secrets: int


class WebhookMade(BaseModel):
    """A webhook with its new secret (`whsec_...`), which is shown this once."""

    webhook: WebhookOut
    secret: str


class DeliveryOut(BaseModel):
    """A message and the attempts to deliver it."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    job_id: str
    kind: str
    status: Literal["pending", "delivered", "failed"]
    attempts: int
    next_at: str | None
    history: list[Mapping[str, Any]]
    created_at: str
    body: Mapping[str, Any]


@router.post("", status_code=201, responses=responses())
def create_webhook(context: Context, identity: HookManager, wanted: WebhookRequest) -> WebhookMade:
    """Register an address for events; the secret that signs them is shown this once."""
    context.guard.check(wanted.url)
    made = webhooks.register(context.database, identity.owner_id, wanted.url, wanted.kinds, every_job=wanted.every_job)
    audit.write(context.database, identity.actor, "webhook.create", made.webhook.id, {"url": wanted.url})
    return WebhookMade(webhook=WebhookOut.model_validate(made.webhook), secret=made.secret)


@router.get("", responses=responses())
def get_webhooks(context: Context, identity: HookManager) -> list[WebhookOut]:
    """List your webhooks."""
    return [WebhookOut.model_validate(hook) for hook in webhooks.list_webhooks(context.database, identity.owner_id)]


@router.get("/{webhook_id}", responses=responses(404))
def get_webhook(context: Context, identity: HookManager, webhook_id: _Id) -> WebhookOut:
    """Look at a webhook."""
    return WebhookOut.model_validate(webhooks.find(context.database, identity.owner_id, webhook_id))


@router.delete("/{webhook_id}", status_code=204, responses=responses(404))
def delete_webhook(context: Context, identity: HookManager, webhook_id: _Id) -> None:
    """Send nothing more there."""
    webhooks.delete(context.database, identity.owner_id, webhook_id)
    audit.write(context.database, identity.actor, "webhook.delete", webhook_id)


@router.post("/{webhook_id}/rotate", responses=responses(404))
def rotate_secret(
    context: Context, identity: HookManager, webhook_id: _Id, wanted: RotateRequest | None = None
) -> WebhookMade:
    """Make a new secret; for a while messages carry a signature by the last one too."""
    overlap = timedelta(seconds=(wanted or RotateRequest()).overlap_seconds)
    made = webhooks.rotate(context.database, identity.owner_id, webhook_id, overlap=overlap)
    audit.write(context.database, identity.actor, "webhook.rotate", webhook_id)
    return WebhookMade(webhook=WebhookOut.model_validate(made.webhook), secret=made.secret)


@router.get("/{webhook_id}/deliveries", responses=responses(404))
def get_deliveries(
    context: Context,
    identity: HookManager,
    webhook_id: _Id,
    status: Literal["pending", "delivered", "failed"] | None = None,
    before: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$", description="Id of the last one seen.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> list[DeliveryOut]:
    """List messages, newest first, with every attempt to deliver them."""
    hook = webhooks.find(context.database, identity.owner_id, webhook_id)
    found = outbox.deliveries(context.database, hook.id, status=status, before=before, limit=limit)
    return [DeliveryOut.model_validate(delivery) for delivery in found]


@router.post("/{webhook_id}/deliveries/{delivery_id}/redeliver", status_code=202, responses=responses(404))
def redeliver(context: Context, identity: HookManager, webhook_id: _Id, delivery_id: _Id) -> DeliveryOut:
    """Send a message again, under its old id."""
    hook = webhooks.find(context.database, identity.owner_id, webhook_id)
    return DeliveryOut.model_validate(outbox.redeliver(context.database, hook.id, delivery_id))
