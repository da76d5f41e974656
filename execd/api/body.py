"""Request bodies as validated values, or an error that names field and value."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from execd.errors import ExecdError, InvalidBody, InvalidContent, RequestTimeout

if TYPE_CHECKING:
    from pydantic import BaseModel
    from pydantic_core import ErrorDetails

    from execd.api.state import TypedRequest

    Model = TypeVar("Model", bound=BaseModel)

BODY_SECONDS: Final = 60.0
"""The longest wait for a JSON body to arrive completely."""
SILENCE_SECONDS: Final = 120.0
"""The longest wait for the next bytes of a file."""
MAX_LIST_ITEMS: Final = 131_072
MAX_OBJECT_FIELDS: Final = 10_000
"""Items in one array, and fields in one object, of a JSON body."""
_MOST_FIELDS: Final = 4 * MAX_OBJECT_FIELDS  # in all: to look at more would take long on the event loop
_SMALL_BYTES: Final = 16 * 1024  # of JSON, in which no number of mistakes costs much
_SHOWN = 80  # characters of a value in a message


async def parse_body(request: TypedRequest, model: type[Model]) -> Model:
    """The body as `model`.

    Raises:
        InvalidBody: no JSON, not as the model wants it, or cut short; nothing has run.
        RequestTimeout: it did not arrive within `BODY_SECONDS`.
        BodyTooLarge: from the middleware that counts it.
    """
    return validated(model, await _read(request))


def validated(
    model: type[Model], data: bytes, kind: type[ExecdError] = InvalidBody, what: str = "the body"
) -> Model:
    """JSON as `model`.

    Raises:
        kind: no JSON, or not as the model wants it.
    """
    from pydantic import ValidationError
    from pydantic_core import from_json

    try:
        if len(data) <= _SMALL_BYTES:
            return model.model_validate_json(data)
        # A colon after a quote stands behind a field's name; inside of a string that quote is escaped.
        fields = data.count(b'":') - data.count(b'\\":')
        if fields > _MOST_FIELDS:
            raise kind(f"{what} has {fields} fields, allowed are {MAX_OBJECT_FIELDS} in one object")
        return model.model_validate(_few_items(from_json(data), kind))
    except ValueError as error:
        if not isinstance(error, ValidationError):  # from `from_json`
            raise kind(f"{what} is no JSON: {error}") from None
        problems = error.errors(include_url=False)
        field = _path(problems[0])
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        sentence = _sentence(problems[0], field, what)
        raise kind(f"{sentence}{more}", {"field": field} if field else None) from None


def _few_items(value: object, kind: type[ExecdError], field: str = "") -> object:
    # Pydantic reports every item that is wrong: a few megabytes of small items would become gigabytes.
    if isinstance(value, list | dict):
        limit = MAX_LIST_ITEMS if isinstance(value, list) else MAX_OBJECT_FIELDS
        if len(value) > limit:
            what = f"{field}: " if field else ""
            raise kind(f"{what}{len(value)} items, allowed are {limit}", {"field": field} if field else None)
        if isinstance(value, dict):
            for name, item in value.items():
                if isinstance(item, list | dict):
                    _few_items(item, kind, f"{field}.{name}" if field else str(name))
        elif value and any(isinstance(item, list | dict) for item in value):
            for number, item in enumerate(value):
                _few_items(item, kind, f"{field}[{number}]")
    return value


class Body:
    """A body of any length as it comes, for a service that takes it in pieces."""

    def __init__(self, request: TypedRequest) -> None:
        self._receive = request.receive
        self._waiting: asyncio.Timeout | None = None
        self._interrupted = False
        self.complete = False
        """Nothing comes after what was read."""

    async def read(self) -> bytes:
        """The next bytes; none at the end, or once `interrupt` was called.

        Raises:
            InvalidContent: the client has left.
            RequestTimeout: nothing came for `SILENCE_SECONDS`.
        """
        while not self._over():
            try:
                async with asyncio.timeout(SILENCE_SECONDS) as self._waiting:
                    message = await self._receive()
            except TimeoutError:
                if self._over():
                    return b""
                raise RequestTimeout(f"no byte of the body came for {SILENCE_SECONDS:g} s") from None
            finally:
                self._waiting = None
            if message["type"] == "http.disconnect":
                raise InvalidContent("the client left before its request was complete")
            self.complete = not message.get("more_body", False)
            data: bytes = message.get("body", b"")
            if data:
                return data
        return b""

    def _over(self) -> bool:
        return self.complete or self._interrupted

    def interrupt(self) -> None:
        """Let a `read` that waits return: what comes is no longer wanted."""
        self._interrupted = True
        if self._waiting is not None and not self._waiting.expired():
            self._waiting.reschedule(asyncio.get_running_loop().time())


async def _read(request: TypedRequest) -> bytes:
    message = await request.receive()
    body: bytes = message.get("body", b"")
    if not message.get("more_body", False):
        return body
    parts = [body]
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while message.get("more_body", False):
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise InvalidBody("the client left before its request was complete")
                parts.append(message.get("body", b""))
    except TimeoutError:
        raise RequestTimeout(f"the body did not arrive within {BODY_SECONDS:g} s") from None
    return b"".join(parts)


def _sentence(problem: ErrorDetails, field: str, what: str) -> str:
    kind, message = problem["type"], problem["msg"].removeprefix("Value error, ")
    if kind == "json_invalid":
        return f"{what} is no JSON: {message.removeprefix('Invalid JSON: ')}"
    if kind == "extra_forbidden":
        return f"{field}: there is no such field"
    if not field:
        return message
    shown = repr(problem["input"])
    shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "..."
    return f"{field}: {message}, it is {shown}"


def _path(problem: ErrorDetails) -> str:
    path = ""
    for part in problem["loc"]:
        if part == "[key]":
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path[:200]
