"""Audit: who did what, when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict

from autoxrd.api.auth import KeyManager
from autoxrd.api.context import Context
from autoxrd.api.problems import responses
from autoxrd.store.service.audit import list_audit
from autoxrd.store.service.keys import Scope

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/audit", tags=["audit"])


class AuditOut(BaseModel):
    """An entry of the audit log."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    at: str
    owner_id: str
    key_id: str | None
    action: str
    subject: str
    request_id: str | None
    details: Mapping[str, Any]


@router.get("", responses=responses())
def get_audit(
    context: Context,
    identity: KeyManager,
    before: Annotated[str | None, Query(pattern=r"^[0-9a-f-]{36}$", description="Id of the last one seen.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> list[AuditOut]:
    """List what was done with your keys, newest first; with `service:admin`, with all keys."""
    owner = None if Scope.ADMIN.value in identity.scopes else identity.owner_id
    found = list_audit(context.database, owner, before=before, limit=limit)
    return [AuditOut.model_validate(entry) for entry in found]
