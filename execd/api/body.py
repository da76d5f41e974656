"""Request bodies as validated values, or an error that names field and value."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from execd.errors import InvalidBody, RequestTimeout

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails

    from execd.api.state import TypedRequest

    Model = TypeVar("Model", bound=BaseModel)

BODY_SECONDS: Final = 60.0
"""The longest wait for a JSON body to arrive completely."""
_SHOWN = 80  # characters of a value in a message


async def parse_body(request: TypedRequest, model: type[Model]) -> Model:
    """The body as `model`.

    Raises:
        InvalidBody: no JSON, not as the model wants it, or cut short; nothing has run.
        RequestTimeout: it did not arrive within `BODY_SECONDS`.
        BodyTooLarge: from the middleware that counts it.
    """
    from pydantic import ValidationError

    try:
        return model.model_validate_json(await _read(request))
    except ValidationError as error:
        raise _explained(error) from None


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


def _explained(error: ValidationError) -> InvalidBody:
    problems = error.errors(include_url=False)
    first = problems[0]
    field = _path(first)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return InvalidBody(f"{_sentence(first, field)}{more}", {"field": field} if field else None)


def _sentence(problem: ErrorDetails, field: str) -> str:
    kind, message = problem["type"], problem["msg"].removeprefix("Value error, ")
    if kind == "json_invalid":
        return f"the body is no JSON: {message.removeprefix('Invalid JSON: ')}"
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
