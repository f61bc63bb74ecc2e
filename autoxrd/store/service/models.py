"""Which tables does the service keep beside the graphs? Mutable ones: they say where a job stands, never what it found.

Times are ISO 8601 text in UTC with microseconds, which sorts and reads the same on both databases; no decision about a
lease depends on them (`autoxrd.store.service.leases`).
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Float, ForeignKey, Index, Integer, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from autoxrd.store.models import Base as GraphBase

__all__ = [
    "AuditRow",
    "DeliveryRow",
    "FeedRow",
    "IdempotencyRow",
    "JobFileRow",
    "KeyRow",
    "OwnerRow",
    "ReviewRow",
    "SecretRow",
    "ServiceBase",
    "ServiceJobRow",
    "StepRow",
    "UploadRow",
    "WebhookRow",
]


class ServiceBase(DeclarativeBase):
    """Declarative base of the service's own tables; their migrations are a history of their own."""

    metadata = MetaData(naming_convention=GraphBase.metadata.naming_convention)


class OwnerRow(ServiceBase):
    """Somebody who owns jobs and keys. ``served`` is the work done for them, over ``weight``: fair queueing."""

    __tablename__ = "owners"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), unique=True)
    weight: Mapped[float] = mapped_column(Float, default=1.0)
    served: Mapped[float] = mapped_column(Float, default=0.0)
    limits: Mapped[str] = mapped_column(Text, default="{}")
    steps_used: Mapped[int] = mapped_column(Integer, default=0)
    engine_seconds_used: Mapped[float] = mapped_column(Float, default=0.0)
    tokens_used: Mapped[int] = mapped_column(Integer, default=0)
    money_used: Mapped[float] = mapped_column(Float, default=0.0)
    stored_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    created_at: Mapped[str] = mapped_column(String(32))


class KeyRow(ServiceBase):
    """An API key: the hash of its secret, what it may do and until when."""

    __tablename__ = "api_keys"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("owners.id"), index=True)
    name: Mapped[str] = mapped_column(String(100))
    secret_hash: Mapped[str] = mapped_column(String(64))
    scopes: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(String(32))
    expires_at: Mapped[str | None] = mapped_column(String(32))
    revoked_at: Mapped[str | None] = mapped_column(String(32))


class ServiceJobRow(ServiceBase):
    """Where a job stands, who works on it, and the figures that a list shows. Its graph has the same ``id``."""

    __tablename__ = "service_jobs"
    __table_args__ = (
        Index("ix_service_jobs_claim", "queue", "state", "lease_holder", "owner_id"),
        Index("ix_service_jobs_owner", "owner_id", "id"),
        Index("ix_service_jobs_owner_state", "owner_id", "state"),
        Index("ix_service_jobs_lease", "lease_holder"),
        Index("ix_service_jobs_series", "owner_id", "series"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("owners.id"))
    title: Mapped[str] = mapped_column(String(200))
    state: Mapped[str] = mapped_column(String(16))
    queue: Mapped[str] = mapped_column(String(16))
    priority: Mapped[int] = mapped_column(Integer)
    engine: Mapped[str] = mapped_column(String(64))
    planner: Mapped[str] = mapped_column(String(64))
    request: Mapped[str] = mapped_column(Text)
    series: Mapped[str | None] = mapped_column(String(100))
    version: Mapped[int] = mapped_column(Integer, default=1)
    created_at: Mapped[str] = mapped_column(String(32))
    updated_at: Mapped[str] = mapped_column(String(32))
    finished_at: Mapped[str | None] = mapped_column(String(32))
    # who works on it
    fence: Mapped[int] = mapped_column(Integer, default=0)
    heartbeat: Mapped[int] = mapped_column(Integer, default=0)
    lease_holder: Mapped[str | None] = mapped_column(String(100))
    last_holder: Mapped[str | None] = mapped_column(String(100))
    losses: Mapped[int] = mapped_column(Integer, default=0)
    # what was used of its budgets
    steps_used: Mapped[int] = mapped_column(Integer, default=0)
    wall_seconds_used: Mapped[float] = mapped_column(Float, default=0.0)
    engine_seconds_used: Mapped[float] = mapped_column(Float, default=0.0)
    tokens_used: Mapped[int] = mapped_column(Integer, default=0)
    money_used: Mapped[float] = mapped_column(Float, default=0.0)
    stored_bytes: Mapped[int] = mapped_column(BigInteger, default=0)
    deleted_at: Mapped[str | None] = mapped_column(String(32))
    # what a list shows
    feed_last: Mapped[int] = mapped_column(Integer, default=0)
    rwp: Mapped[float | None] = mapped_column(Float)
    gof: Mapped[float | None] = mapped_column(Float)
    current_state: Mapped[str | None] = mapped_column(String(16))
    verdict: Mapped[str | None] = mapped_column(String(32))
    error: Mapped[str | None] = mapped_column(Text)


class FeedRow(ServiceBase):
    """One event of a job, numbered 1, 2, ... without gaps in the order of the commits."""

    __tablename__ = "feed"

    job_id: Mapped[str] = mapped_column(ForeignKey("service_jobs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(32))
    at: Mapped[str] = mapped_column(String(32))
    data: Mapped[str] = mapped_column(Text)


class StepRow(ServiceBase):
    """One attempt in short (0 is the root): what a list, a curve or a drawing of the graph needs of it."""

    __tablename__ = "steps"
    __table_args__ = (Index("ix_steps_candidate", "job_id", "candidate_id"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("service_jobs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    parent_id: Mapped[str | None] = mapped_column(String(16))
    candidate_id: Mapped[str | None] = mapped_column(String(16))
    status: Mapped[str] = mapped_column(String(16))
    kind: Mapped[str] = mapped_column(String(32))
    stage: Mapped[str] = mapped_column(String(32))
    planner: Mapped[str] = mapped_column(String(64))
    rationale: Mapped[str] = mapped_column(Text)
    reasons: Mapped[str] = mapped_column(Text)
    rwp: Mapped[float | None] = mapped_column(Float)
    gof: Mapped[float | None] = mapped_column(Float)
    n_free: Mapped[int | None] = mapped_column(Integer)
    seconds: Mapped[float | None] = mapped_column(Float)
    at: Mapped[str] = mapped_column(String(32))


class JobFileRow(ServiceBase):
    """A file of a job by role and name: an input, a file of the report. The bytes are artifact ``sha256``."""

    __tablename__ = "job_files"
    __table_args__ = (Index("ix_job_files_sha256", "sha256"),)

    job_id: Mapped[str] = mapped_column(ForeignKey("service_jobs.id"), primary_key=True)
    role: Mapped[str] = mapped_column(String(16), primary_key=True)
    name: Mapped[str] = mapped_column(String(200), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64))
    size: Mapped[int] = mapped_column(Integer)
    media_type: Mapped[str] = mapped_column(String(100))


class ReviewRow(ServiceBase):
    """A step that a planner asked a person about, or an action that a person added, and what became of it."""

    __tablename__ = "reviews"
    __table_args__ = (Index("ix_reviews_job", "job_id", "status"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("service_jobs.id"))
    status: Mapped[str] = mapped_column(String(16))
    decision: Mapped[str | None] = mapped_column(String(16))
    action: Mapped[str] = mapped_column(Text)
    source: Mapped[str] = mapped_column(Text)
    files: Mapped[str] = mapped_column(Text)
    note: Mapped[str] = mapped_column(Text)
    attempt: Mapped[int | None] = mapped_column(Integer)
    reason: Mapped[str | None] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(String(32))
    answered_at: Mapped[str | None] = mapped_column(String(32))


class WebhookRow(ServiceBase):
    """Where an owner wants events to be sent. ``secrets``: JSON list of secret and until when, the newest first."""

    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    owner_id: Mapped[str] = mapped_column(ForeignKey("owners.id"), index=True)
    url: Mapped[str] = mapped_column(String(2000))
    kinds: Mapped[str] = mapped_column(Text)
    every_job: Mapped[bool] = mapped_column(Boolean)
    secrets: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(String(32))
    disabled_at: Mapped[str | None] = mapped_column(String(32))
    deleted_at: Mapped[str | None] = mapped_column(String(32))


class DeliveryRow(ServiceBase):
    """A message for one webhook, written with the event that it tells of; ``next_at`` says when it is due."""

    __tablename__ = "deliveries"
    __table_args__ = (
        Index("ix_deliveries_due", "status", "next_at"),
        Index("ix_deliveries_webhook", "webhook_id", "id"),
    )

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id"))
    job_id: Mapped[str] = mapped_column(String(36))
    kind: Mapped[str] = mapped_column(String(32))
    body: Mapped[str] = mapped_column(Text)
    status: Mapped[str] = mapped_column(String(16))
    attempts: Mapped[int] = mapped_column(Integer)
    next_at: Mapped[str] = mapped_column(String(32))
    history: Mapped[str] = mapped_column(Text)
    created_at: Mapped[str] = mapped_column(String(32))


class AuditRow(ServiceBase):
    """Who did what, when; append-only. No foreign keys: what it tells of may be gone."""

    __tablename__ = "audit"
    __table_args__ = (Index("ix_audit_owner", "owner_id", "id"),)

    id: Mapped[str] = mapped_column(String(36), primary_key=True)
    at: Mapped[str] = mapped_column(String(32))
    owner_id: Mapped[str] = mapped_column(String(36))
    key_id: Mapped[str | None] = mapped_column(String(36))
    action: Mapped[str] = mapped_column(String(32))
    subject: Mapped[str] = mapped_column(String(64))
    request_id: Mapped[str | None] = mapped_column(String(64))
    details: Mapped[str] = mapped_column(Text)


class SecretRow(ServiceBase):
    """A key of the service itself, shared by its processes."""

    __tablename__ = "service_secrets"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    secret: Mapped[str] = mapped_column(String(64))


class UploadRow(ServiceBase):
    """An owner has uploaded these bytes and may name them in a request."""

    __tablename__ = "uploads"

    owner_id: Mapped[str] = mapped_column(ForeignKey("owners.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(200))
    size: Mapped[int] = mapped_column(Integer)
    created_at: Mapped[str] = mapped_column(String(32))


class IdempotencyRow(ServiceBase):
    """An Idempotency-Key that an owner used, and the job that it made."""

    __tablename__ = "idempotency"

    owner_id: Mapped[str] = mapped_column(ForeignKey("owners.id"), primary_key=True)
    key: Mapped[str] = mapped_column(String(200), primary_key=True)
    request_hash: Mapped[str] = mapped_column(String(64))
    job_id: Mapped[str] = mapped_column(String(36))
    created_at: Mapped[str] = mapped_column(String(32))
