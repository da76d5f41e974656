"""What clients send to list directories and to search: the forms with a JSON body."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from execd.models.types import NonEmpty, Text, WholeNumber

Count = Annotated[WholeNumber, Field(ge=0, le=2**63 - 1)]
Limit = Annotated[WholeNumber, Field(ge=1, le=2**63 - 1)]
EntryField = Literal["path", "type", "size", "modified_at", "created_at", "owner", "group", "mode"]


class _Page(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    path: NonEmpty
    limit: Limit | None = None
    cursor: Text | None = None
    fields: list[EntryField] | None = None


class ListDirectoryRequest(_Page):
    """Body of `POST /directories/list`. Null is the same as absent."""

    depth: Count | None = None


class SearchFilesRequest(_Page):
    """Body of `POST /files/search`. Null is the same as absent."""

    pattern: Text | None = None
