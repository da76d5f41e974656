"""What clients send to the file routes that change things. Null is the same as absent."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, RootModel

from execd.models.types import Mode, NonEmpty, Text, WholeNumber

MAX_ITEMS = 10_000
"""Items in one call."""
_STRICT = ConfigDict(extra="forbid", frozen=True, strict=True)


class Permission(BaseModel):
    """Mode as octal digits (absent or 0: as it is), owner and group by name or number."""

    model_config = _STRICT

    mode: Mode | None = None
    owner: Text | None = None
    group: Text | None = None


class Permissions(RootModel[Annotated[dict[NonEmpty, Permission], Field(max_length=MAX_ITEMS)]]):
    """Body of `POST /files/permissions` and `POST /directories`: what to set, by path."""

    model_config = ConfigDict(frozen=True, strict=True)


class Move(BaseModel):
    """From where to where."""

    model_config = _STRICT

    src: NonEmpty
    dest: NonEmpty


class Moves(RootModel[Annotated[list[Move], Field(max_length=MAX_ITEMS)]]):
    """Body of `POST /files/mv`."""

    model_config = ConfigDict(frozen=True, strict=True)


class Replacement(BaseModel):
    """Every `old` becomes `new`; `expected_count`: only if there are exactly so many."""

    model_config = _STRICT

    old: Annotated[str, Field(min_length=1)]
    new: str
    expected_count: Annotated[WholeNumber, Field(ge=0)] | None = None


class Replacements(RootModel[Annotated[dict[NonEmpty, Replacement], Field(max_length=MAX_ITEMS)]]):
    """Body of `POST /files/replace`: what to replace, by path."""

    model_config = ConfigDict(frozen=True, strict=True)
