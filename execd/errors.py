"""Every error that can leave execd, each named for its situation.

    ExecdError
        BadRequest 400            the request is not HTTP, or cannot be handled as it is
            InvalidBody           the JSON body is wrong; the message names the field and the value
            InvalidQuery          a query parameter is wrong
            MissingQuery          a query parameter is missing
            StartFailed           the program cannot be started as asked
            IdentityNotPermitted  the daemon may not become that user
            InvalidFile           a path names the wrong kind of thing, or none that can be
            InvalidContent        the bytes sent are not what the route takes
            InvalidMetadata       the metadata of an uploaded file is wrong
        Unauthorized 401
        NotFound 404              no such route
            CommandNotFound       no such command, or no longer
            FileMissing           no such file or directory
        Forbidden 403             the daemon has no right to do that to this file
            PathNotAllowed        outside of the roots that file routes are limited to
        MethodNotAllowed 405
        RequestTimeout 408        the body did not arrive
        Conflict 409
            AlreadyExists         something is there already
            CountMismatch         not as many matches as expected
        PreconditionFailed 412    If-Match or If-None-Match does not hold
        BodyTooLarge 413
        RangeNotSatisfiable 416
        TooManyExecutions 429
        HeadTooLarge 431
        InternalError 500
        Unavailable 503
            ResourceExhausted     the machine has no process, memory or descriptor left
            TooManyRequests
            ShuttingDown
            NotReady
        InsufficientStorage 507   the disk, or a quota, is full

`CODES` is the one table: code, status, retryable, executed, meaning. No HTTP library is used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, Literal

MESSAGE_LIMIT: Final = 2000
"""Characters of a message: it may quote what the client sent."""

Executed = Literal["not_executed", "unknown", "executed"]


class ExecdError(Exception):
    """Base. The class says what happened; the instance's message says to what.

    `retryable`: the same request may work later. `executed`: whether anything ran. Both are what the class
    promises; only `partly_done` gives an instance others.
    """

    code: ClassVar[str]
    status: ClassVar[int]
    retryable: bool = False
    executed: Executed = "not_executed"
    retry_after: ClassVar[int | None] = None  # seconds

    def __init__(self, message: str, details: dict[str, object] | None = None) -> None:
        if len(message) > MESSAGE_LIMIT:
            message = message[:MESSAGE_LIMIT] + "..."
        super().__init__(message)
        self.message = message
        self.details = details

    @property
    def headers(self) -> dict[str, str]:
        """Headers that the answer carries besides the body."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}

    def partly_done(self, done: Sequence[str]) -> ExecdError:
        """This error as the end of a call with several items of which the first ones, `done`, were done.

        `details.done` has them as the client named them (bytes that are no UTF-8 as U+FFFD). If there are
        any, the error says `executed` and is not retryable: what was done stays. What would be 429 or 503 is
        then a 500 with the code in `details.cause`, because clients repeat those two by themselves.
        """
        error: ExecdError = self
        if done and self.status in (429, 503):
            error = InternalError(self.message, {**(self.details or {}), "cause": self.code})
        shown = [name.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for name in done]
        error.details = {**(error.details or {}), "done": shown}
        if done:
            error.executed, error.retryable = "executed", False
        return error


class BadRequest(ExecdError):
    """The request is malformed."""

    code = "BAD_REQUEST"
    status = 400


class InvalidBody(BadRequest):
    """The body is not the JSON that the route expects; `details.field` names the part that is wrong."""

    code = "INVALID_REQUEST_BODY"


class InvalidQuery(BadRequest):
    """A query parameter has a value that is not allowed."""

    code = "INVALID_QUERY"


class MissingQuery(BadRequest):
    """A query parameter that the route needs is missing or empty."""

    code = "MISSING_QUERY"


class StartFailed(BadRequest):
    """The program could not be started; `details` has the errno and the stage."""

    code = "COMMAND_START_FAILED"


class IdentityNotPermitted(BadRequest):
    """The daemon lacks the capability to run a command as that uid or gid."""

    code = "IDENTITY_NOT_PERMITTED"


class InvalidFile(BadRequest):
    """The path names the wrong kind of thing for this call, or is no possible path."""

    code = "INVALID_FILE"


class InvalidContent(BadRequest):
    """The bytes that were sent are not what the route takes."""

    code = "INVALID_FILE_CONTENT"


class InvalidMetadata(BadRequest):
    """The metadata of an uploaded file is wrong; the message names the field."""

    code = "INVALID_FILE_METADATA"


class Unauthorized(ExecdError):
    """The access token is missing or wrong."""

    code = "UNAUTHORIZED"
    status = 401


class NotFound(ExecdError):
    """There is no such route."""

    code = "NOT_FOUND"
    status = 404


class CommandNotFound(NotFound):
    """There is no command with that id: never started here, or its record has expired."""

    code = "COMMAND_NOT_FOUND"

    def __init__(self, command_id: str) -> None:
        super().__init__(f"no command with id {command_id[:80]!r}")


class FileMissing(NotFound):
    """There is no such file or directory."""

    code = "FILE_NOT_FOUND"


class Forbidden(ExecdError):
    """The daemon has no right to do that to this file, or its file system is read-only."""

    code = "PERMISSION_DENIED"
    status = 403


class PathNotAllowed(Forbidden):
    """The path leads outside of the directories that file routes are limited to."""

    code = "PATH_NOT_ALLOWED"


class MethodNotAllowed(ExecdError):
    """The route exists, but not for this method; the Allow header lists those that it has."""

    code = "METHOD_NOT_ALLOWED"
    status = 405


class RequestTimeout(ExecdError):
    """The request's body did not arrive in time."""

    code = "REQUEST_TIMEOUT"
    status = 408
    retryable = True


class Conflict(ExecdError):
    """The call contradicts what is there."""

    code = "CONFLICT"
    status = 409


class AlreadyExists(Conflict):
    """Something is there already, or a directory is not empty."""

    code = "ALREADY_EXISTS"


class CountMismatch(Conflict):
    """There are not as many matches as expected; `details` has the real count. Nothing was changed."""

    code = "COUNT_MISMATCH"


class PreconditionFailed(ExecdError):
    """If-Match or If-None-Match does not hold; nothing was changed."""

    code = "PRECONDITION_FAILED"
    status = 412


class BodyTooLarge(ExecdError):
    """The request's body is larger than the limit."""

    code = "BODY_TOO_LARGE"
    status = 413


class RangeNotSatisfiable(ExecdError):
    """No byte of the file lies in the range that was asked for."""

    code = "RANGE_NOT_SATISFIABLE"
    status = 416

    def __init__(self, message: str, size: int) -> None:
        super().__init__(message)
        self._size = size

    @property
    def headers(self) -> dict[str, str]:
        """With the size that a range has to fit, in bytes."""
        return {"Content-Range": f"bytes */{self._size}"}


class TooManyExecutions(ExecdError):
    """As many commands run as may at once, or as many that ended have left processes holding their output."""

    code = "TOO_MANY_EXECUTIONS"
    status = 429
    retryable = True
    retry_after = 1


class HeadTooLarge(ExecdError):
    """The request line and headers are larger than the limit."""

    code = "HEADERS_TOO_LARGE"
    status = 431


class InternalError(ExecdError):
    """A fault in execd itself; the log has the traceback under the request id."""

    code = "RUNTIME_ERROR"
    status = 500
    executed = "unknown"


class Unavailable(ExecdError):
    """Not now; nothing ran."""

    code = "SERVICE_UNAVAILABLE"
    status = 503
    retryable = True
    retry_after = 1


class ResourceExhausted(Unavailable):
    """The machine has no process, memory or file descriptor left to start the command with."""

    code = "RESOURCE_EXHAUSTED"


class TooManyRequests(Unavailable):
    """As many requests are being answered as may be at once."""

    code = "TOO_MANY_REQUESTS"


class ShuttingDown(Unavailable):
    """The daemon is stopping and starts nothing new."""

    code = "SHUTTING_DOWN"


class NotReady(Unavailable):
    """A readiness check failed; `details.checks` says which and why."""

    code = "NOT_READY"


class InsufficientStorage(ExecdError):
    """The disk or a quota is full; the target is as it was."""

    code = "INSUFFICIENT_STORAGE"
    status = 507


class BrokenOff(Exception):
    """An answer that has begun cannot be completed, through no fault of ours: the connection is closed."""


def _leaves(cls: type[ExecdError]) -> list[type[ExecdError]]:
    found = [cls] if "code" in cls.__dict__ else []
    for child in cls.__subclasses__():
        found += _leaves(child)
    return found


CODES: dict[str, type[ExecdError]] = {cls.code: cls for cls in _leaves(ExecdError)}
"""Every code that an answer can carry."""
