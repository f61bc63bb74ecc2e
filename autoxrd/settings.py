"""How is the service set up? By environment variables AUTOXRD_..., read once by whoever starts it and passed on."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

__all__ = ["Settings"]


PROVIDERS = ("OPENAI_", "ANTHROPIC_", "AZURE_", "GEMINI_", "MISTRAL_", "OPENROUTER_", "GROQ_", "DEEPSEEK_")
"""How the environment variables begin that hold the key of a provider of models."""


class Settings(BaseSettings):
    """Settings of the service; docs/service.md has the same list for users."""

    model_config = SettingsConfigDict(env_prefix="AUTOXRD_", extra="ignore", frozen=True)

    data_dir: Path = Path("autoxrd-service")
    """Artifacts, and the database where it is SQLite."""
    database_url: SecretStr | None = None
    """``postgresql+psycopg://user:password@host/name``; SQLite in ``data_dir`` where it is not set."""
    broker_url: SecretStr | None = None
    """``redis://...``; without it steps run in this process's own slots."""
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8417
    slots: Annotated[int, Field(ge=0, le=256)] = min(os.cpu_count() or 1, 4)
    """Steps done at once by `autoxrd serve`; 0 leaves all work to workers."""
    engines_per_slot: Annotated[int, Field(ge=1, le=16)] = 2
    """Engine processes that a slot keeps alive for jobs that it may come back to."""
    heartbeat_seconds: Annotated[float, Field(gt=0.0)] = 1.0
    lease_seconds: Annotated[float, Field(gt=0.0)] = 15.0
    """A worker that shows no life for so long is taken for dead."""
    step_seconds: Annotated[float, Field(gt=0.0)] = 1800.0
    """Longest step; its processes are killed after it."""
    poll_seconds: Annotated[float, Field(gt=0.0)] = 0.5
    """How often an idle slot looks for work that nobody told it of."""
    step_host: str = "autoxrd.jobs.host"
    """Module (or file, by its path) that is run as the process that does steps."""
    max_upload_bytes: Annotated[int, Field(gt=0)] = 64 * 2**20
    """Largest body of a request."""
    max_file_bytes: Annotated[int, Field(gt=0)] = 32 * 2**20
    requests_per_second: Annotated[float, Field(gt=0.0)] = 100.0
    """Sustained rate of one key, in each API process; bursts may be twice as large."""
    open_jobs: Annotated[int, Field(gt=0)] = 10_000
    """Open jobs that an owner made by `autoxrd serve` may have."""
    retention_days: Annotated[float, Field(gt=0.0)] | None = None
    """A job is deleted so long after it is over; not set: never."""
    hooks_allow_loopback: bool = False
    """Let webhooks go to this machine itself, and over plain http: for a laptop and for tests, never in production."""
    log_level: str = "INFO"
    llm_model: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """Language model of the planners ``llm`` and ``hybrid``, as LiteLLM names it; without it they are refused."""
    llm_answer: Literal["auto", "schema", "tool", "json"] = "auto"
    llm_budget: str = ""
    """The most that one job may use: ``calls=200,tokens=2000000,usd=5,seconds=3600``."""

    def database(self) -> str:
        """Return the database's URL, password included."""
        if self.database_url is not None:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir.absolute() / 'service.sqlite'}"

    def artifacts_dir(self) -> Path:
        """Return the folder of the artifacts."""
        return self.data_dir.absolute() / "artifacts"

    def environment(self) -> dict[str, str]:
        """Return the variables that give a child process the same settings."""
        values = {"DATA_DIR": str(self.data_dir.absolute()), "DATABASE_URL": self.database()}
        names = ("log_level", "engines_per_slot", "llm_model", "llm_answer", "llm_budget")
        values |= {name.upper(): str(value) for name in names if (value := getattr(self, name)) is not None}
        # a provider's key goes to who asks the model, and from there no further: engines get none of it
        wanted = ("AUTOXRD_",) if self.llm_model is None else ("AUTOXRD_", *PROVIDERS)
        passed = {name: value for name, value in os.environ.items() if name.startswith(wanted)}
        return passed | {f"AUTOXRD_{name}": value for name, value in values.items()}
