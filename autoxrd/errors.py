"""One tree of exceptions; each carries a stable code, a sentence and its data.

``code`` is at once the problem+json type, the metric label and the reason code
in a graph. The sentence says what to do next. Nobody catches ``AutoxrdError``
to drop it: the edges (CLI, API) render it.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "AccessDenied",
    "AutoxrdError",
    "Conflict",
    "EngineCrashed",
    "EngineDiverged",
    "EngineError",
    "EngineOutputInvalid",
    "EngineTimeout",
    "EngineUnavailable",
    "LeaseLost",
    "LimitExceeded",
    "NotFound",
    "PlannerError",
    "PolicyError",
    "ServiceUnavailable",
    "StorageError",
    "UserInputError",
]


class AutoxrdError(Exception):
    """Root of the tree.

    Args:
        code: stable machine-readable string, e.g. ``pattern_nan``.
        detail: one sentence for a person, saying what to do next.
        context: the values behind it (file, line, limit, ...), JSON types only.
    """

    def __init__(self, code: str, detail: str, *, context: Mapping[str, object] | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.context: dict[str, object] = dict(context or {})

    def __str__(self) -> str:
        return self.detail


class UserInputError(AutoxrdError):
    """What the user gave cannot be used as it is (exit code 2)."""


class NotFound(AutoxrdError):
    """A job, state, artifact or file that was named does not exist."""


class PolicyError(AutoxrdError):
    """A policy, action or request that the rules do not allow."""


class EngineError(AutoxrdError):
    """An engine did not deliver; the state before the command is untouched."""


class EngineUnavailable(EngineError):
    """The engine or its interpreter is not installed or not usable here."""


class EngineCrashed(EngineError):
    """The engine's process ended without an answer."""


class EngineTimeout(EngineError):
    """The engine's process passed its wall clock and was killed."""


class EngineDiverged(EngineError):
    """The engine answered that the fit cannot be continued."""


class EngineOutputInvalid(EngineError):
    """The engine's answer lacks something or contradicts itself."""


class PlannerError(AutoxrdError):
    """A planner gave no usable proposal."""


class StorageError(AutoxrdError):
    """The graph or an artifact could not be written, read or trusted."""


class LeaseLost(AutoxrdError):
    """Another worker holds the job now, or nobody may: what was computed must not be recorded."""


class Conflict(AutoxrdError):
    """What is asked does not fit what is: the state of the job, or a key used for another request."""


class AccessDenied(AutoxrdError):
    """The request has no valid key, or its key may not do this."""


class LimitExceeded(AutoxrdError):
    """A quota, a budget or a rate is spent."""


class ServiceUnavailable(AutoxrdError):
    """A service that was asked over the network did not answer, or not in the way that was agreed."""
