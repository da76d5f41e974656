"""Query parameters with every byte kept: a path may hold bytes that are no UTF-8."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from execd.errors import InvalidQuery, MissingQuery

if TYPE_CHECKING:
    from execd.api.state import TypedRequest

MAX_PARAMETERS = 10_000


def parameters(request: TypedRequest) -> list[tuple[str, str]]:
    """Every parameter in order. Bytes that are no UTF-8 are kept as surrogates (PEP 383).

    Raises:
        InvalidQuery: there are more than `MAX_PARAMETERS`.
    """
    query = request.scope["query_string"].decode("latin-1")
    try:
        return parse_qsl(
            query, keep_blank_values=True, errors="surrogateescape", max_num_fields=MAX_PARAMETERS
        )
    except ValueError as error:
        raise InvalidQuery(f"more than {MAX_PARAMETERS} query parameters") from error


def values(request: TypedRequest, name: str) -> list[str]:
    """All values of one parameter, in order."""
    return [value for key, value in parameters(request) if key == name]


def required(request: TypedRequest, name: str) -> str:
    """The first value of a parameter.

    Raises:
        MissingQuery: it is absent or empty.
    """
    found = values(request, name)
    if not found or not found[0]:
        raise MissingQuery(f"query parameter {name} is needed", {"field": name})
    return found[0]


def optional(request: TypedRequest, name: str) -> str | None:
    """The first value of a parameter; None if it is absent or empty."""
    found = values(request, name)
    return found[0] if found and found[0] else None


def flag(request: TypedRequest, name: str) -> bool:
    """`true` or `false`; absent or empty is false.

    Raises:
        InvalidQuery: it is neither.
    """
    text = optional(request, name) or "false"
    if text not in ("true", "false"):
        raise InvalidQuery(
            f"query parameter {name} is {text[:80]!r}, allowed are true and false", {"field": name}
        )
    return text == "true"


def whole_number(request: TypedRequest, name: str, low: int, high: int) -> int | None:
    """A whole number from `low` to `high`; None if the parameter is absent or empty.

    Raises:
        InvalidQuery: it is none.
    """
    found = values(request, name)
    if not found or not found[0]:
        return None
    text = found[0]
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or not low <= int(text) <= high:
        raise InvalidQuery(
            f"query parameter {name} is {text[:80]!r}, allowed is a whole number from {low} to {high}",
            {"field": name},
        )
    return int(text)
