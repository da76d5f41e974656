"""What clients send to and get from `/command`. Milliseconds and nulls end here."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from execd.errors import InvalidBody
from execd.models.types import NonEmpty, Text, WholeNumber

if TYPE_CHECKING:
    from execd.services.executions import Execution
    from execd.services.outcome import Outcome

_MAX_ID = 2**32 - 2  # chown(2): (uid_t) -1 means "unchanged", it is no id
_MAX_CWD = 64 * 1024  # characters, before variables are replaced
_MAX_TIMEOUT_MS = 10 * 366 * 86_400_000


def _variable_name(name: str) -> str:
    if not name or "=" in name:
        raise ValueError("is no name for a variable: empty, or with an equals sign")
    return name


Name = Annotated[Text, AfterValidator(_variable_name)]
Id = Annotated[WholeNumber, Field(ge=0, le=_MAX_ID)]
Milliseconds = Annotated[WholeNumber, Field(ge=0, le=_MAX_TIMEOUT_MS)]


class RunCommandRequest(BaseModel):
    """Body of `POST /command`. Null is the same as absent; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: NonEmpty | None = None
    argv: Annotated[list[Text], Field(min_length=1, fail_fast=True)] | None = None
    cwd: Annotated[Text, Field(max_length=_MAX_CWD)] | None = None
    background: bool | None = None
    timeout: Milliseconds | None = None
    uid: Id | None = None
    gid: Id | None = None
    envs: dict[Name, Text] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if (self.command is None) == (self.argv is None):
            raise InvalidBody("exactly one of command and argv is needed", {"field": "command"})
        if self.argv is not None and not self.argv[0]:
            raise InvalidBody("argv[0] is empty: it names the program", {"field": "argv[0]"})
        if self.gid is not None and self.uid is None:
            raise InvalidBody("gid needs uid", {"field": "gid"})
        return self

    @property
    def timeout_seconds(self) -> float | None:
        """None: no limit (absent or 0)."""
        return self.timeout / 1000 if self.timeout else None


def rfc3339(seconds: float) -> str:
    """A wall-clock time as the API shows it, in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def outcome_json(outcome: Outcome) -> dict[str, Any]:
    """The tagged union `Outcome` of the contract."""
    fields: dict[str, Any] = {"kind": outcome.kind, "signal": outcome.signal, "reason": outcome.reason}
    fields["code"] = outcome.status
    return {name: value for name, value in fields.items() if value is not None}


def usage_json(execution: Execution) -> dict[str, Any] | None:
    """`rusage`: seconds of CPU and the largest RSS in bytes, of the process and the children it awaited."""
    usage = execution.usage
    if usage is None:
        return None
    return {
        "cpu_seconds": round(usage.user_seconds + usage.system_seconds, 6),
        "user_seconds": round(usage.user_seconds, 6),
        "system_seconds": round(usage.system_seconds, 6),
        "max_rss_bytes": usage.max_rss_bytes,
        "max_rss_exact": usage.max_rss_exact,
    }


def status_json(execution: Execution) -> dict[str, Any]:
    """`CommandStatus` of the contract."""
    outcome = execution.outcome
    stdout, stderr = execution.log.totals()
    stdout_dropped, stderr_dropped = execution.log.dropped()
    return {
        "id": execution.id,
        "content": execution.content,
        "content_truncated": execution.content_truncated,
        "background": execution.background,
        "running": execution.running,
        "exit_code": outcome.code if outcome else None,
        "error": outcome.text if outcome and outcome.failed else None,
        "started_at": rfc3339(execution.started_at),
        "finished_at": rfc3339(execution.finished_at) if execution.finished_at is not None else None,
        "outcome": outcome_json(outcome) if outcome else None,
        "rusage": usage_json(execution),
        "output": {
            "stdout_bytes": stdout,
            "stderr_bytes": stderr,
            "stdout_dropped": stdout_dropped,
            "stderr_dropped": stderr_dropped,
            "complete": execution.sealed,
            "fault": execution.spool.fault,
        },
    }
