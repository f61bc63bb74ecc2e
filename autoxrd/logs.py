"""How does the service log? One JSON object a line on standard error, with nothing secret in it."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from typing import Any, Protocol

import structlog

__all__ = ["HasLogLevel", "configure_logs", "get_logger", "redacted"]

_SECRET_NAMES = re.compile(r"authorization|cookie|secret|token|password|passwd|api.?key", re.IGNORECASE)
_SECRET_TEXTS = (
    (re.compile(r"axr_[0-9a-f]{32}_[A-Za-z0-9_-]+"), "axr_***"),
    (re.compile(r"whsec_[A-Za-z0-9+/=]+"), "whsec_***"),
    (re.compile(r"(/links/)[A-Za-z0-9_-]+\.?[A-Za-z0-9_-]*"), r"\1***"),
    (re.compile(r"\b(sk|pk)-[A-Za-z0-9_-]{16,}"), r"\1-***"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=-]+"), r"\1 ***"),
    (re.compile(r"([a-z][a-z0-9+.-]*://[^/\s:@]*):[^/\s@]+@"), r"\1:***@"),
)


class HasLogLevel(Protocol):
    """Settings that say how much is logged."""

    @property
    def log_level(self) -> str:
        """``DEBUG``, ``INFO``, ``WARNING`` or ``ERROR``."""
        ...


def redacted(text: str) -> str:
    """Return a text without keys, tokens and passwords."""
    for pattern, instead in _SECRET_TEXTS:
        text = pattern.sub(instead, text)
    return text


def _clean(value: Any, name: str = "") -> Any:
    if name and _SECRET_NAMES.search(name):
        return "***"
    if isinstance(value, str):
        return redacted(value)
    if isinstance(value, Mapping):
        return {str(k): _clean(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _redact(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {name: _clean(value, name) for name, value in event.items()}


def configure_logs(settings: HasLogLevel) -> None:
    """Send the logs of this process, libraries included, to standard error as redacted JSON lines."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    for chatty in ("alembic", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level.upper())


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """Return a logger; its events are short codes with fields."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(f"autoxrd.{name}")
    return logger
