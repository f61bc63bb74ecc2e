"""API keys of an owner: make, list, revoke."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, ConfigDict, Field

from autoxrd.api.auth import KeyManager
from autoxrd.api.context import Context
from autoxrd.api.problems import require_scope_error, responses
from autoxrd.store.service.keys import Scope, issue_key, list_keys, revoke

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/api-keys", tags=["keys"])


class KeyRequest(BaseModel):
    """A key to be made; it can have only scopes that the asking key has."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f]+$")]
    scopes: Annotated[list[Scope], Field(min_length=1)] = [Scope.READ, Scope.WRITE]
    expires_in_days: Annotated[float, Field(gt=0.0, le=3650.0)] | None = 90.0


class KeyOut(BaseModel):
    """A key without its secret."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    scopes: list[str]
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class KeyMade(BaseModel):
    """A new key; its token is shown this once."""

    id: str
    token: str


@router.get("", responses=responses())
def get_keys(context: Context, identity: KeyManager) -> list[KeyOut]:
    """List your keys."""
    return [KeyOut.model_validate(key) for key in list_keys(context.database, identity.owner_id)]


@router.post("", status_code=201, responses=responses())
def create_key(context: Context, identity: KeyManager, wanted: KeyRequest) -> KeyMade:
    """Make a key."""
    if Scope.ADMIN.value not in identity.scopes:
        for scope in wanted.scopes:
            if scope.value not in identity.scopes:
                raise require_scope_error(scope.value)
    lifetime = None if wanted.expires_in_days is None else timedelta(days=wanted.expires_in_days)
    scopes = [scope.value for scope in wanted.scopes]
    made = issue_key(context.database, identity.owner_id, wanted.name, scopes, lifetime=lifetime, actor=identity.actor)
    return KeyMade(id=made.id, token=made.token)


@router.delete("/{key_id}", status_code=204, responses=responses(404))
def delete_key(
    context: Context, identity: KeyManager, key_id: Annotated[str, Path(pattern=r"^[0-9a-f-]{36}$")]
) -> None:
    """Revoke a key at once."""
    revoke(context.database, identity.owner_id, key_id, actor=identity.actor)
