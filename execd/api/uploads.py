"""/files/upload and /files/content: files that clients send."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from execd.api import query
from execd.api.body import Body, validated
from execd.api.framing import ascii_json
from execd.errors import InvalidContent, InvalidMetadata, InvalidQuery
from execd.models.uploads import UploadMetadata
from execd.posix import entries
from execd.services.incoming import Wanted
from execd.services.preconditions import Precondition

if TYPE_CHECKING:
    from execd.api.state import TypedRequest

PATHS: Final = frozenset({"/files/upload", "/files/content"})
"""Whose bodies are limited by the disk alone."""
_BOUNDARY: Final = re.compile(
    r"""multipart/form-data\b.*?;[ \t]*boundary=(?:"([^"\r\n]{1,200})"|([^\s;"]{1,200}))""", re.I
)


async def upload_files(request: TypedRequest) -> Response:
    """Write the files of a multipart body."""
    _refuse(request, "content-encoding")
    content_type = request.headers.get("content-type", "")
    found = _BOUNDARY.match(content_type)
    if found is None:
        shown = repr(content_type[:80]) if content_type else "absent"
        raise InvalidContent(f"Content-Type is {shown}, allowed is multipart/form-data with a boundary")
    boundary = (found[1] or found[2]).encode("latin-1")
    await request.state["uploads"].receive(Body(request), boundary, _metadata)
    return Response()


async def write_content(request: TypedRequest) -> Response:
    """Make the body the content of a file, or put it at its end."""
    _refuse(request, "content-encoding")
    _refuse(request, "content-range")  # RFC 9110 14.5: a server that knows no partial PUT must refuse it
    wanted = Wanted(
        query.required(request, "path"),
        query.optional(request, "owner"),
        query.optional(request, "group"),
        _mode(request),
    )
    precondition = Precondition(_list(request, "if-match"), _list(request, "if-none-match"))
    length = request.headers.get("content-length")
    written = await request.state["uploads"].write(
        Body(request),
        wanted,
        precondition,
        int(length) if length else None,
        add=query.flag(request, "append"),
    )
    tag = entries.etag(written.info)
    body = entries.named(written.path) | {"size": written.info.st_size, "etag": tag}
    return Response(
        ascii_json(body),
        status_code=201 if written.created else 200,
        headers={"ETag": tag},
        media_type="application/json",
    )


def _metadata(data: bytes) -> Wanted:
    found = validated(UploadMetadata, data, InvalidMetadata, "the metadata")
    return Wanted(found.path, found.owner, found.group, found.mode)


def _mode(request: TypedRequest) -> int | None:
    digits = query.whole_number(request, "mode", 0, 7777)
    try:
        return None if digits is None else int(str(digits), 8)
    except ValueError:
        raise InvalidQuery(
            f"query parameter mode is {digits}, allowed are octal digits such as 644", {"field": "mode"}
        ) from None


def _list(request: TypedRequest, name: str) -> str | None:
    # A list may come in several fields of one name (RFC 9110 5.3).
    return ", ".join(request.headers.getlist(name)) or None


def _refuse(request: TypedRequest, name: str) -> None:
    value = request.headers.get(name)
    if value is not None and value.lower() != "identity":
        raise InvalidContent(f"{name} is {value[:80]!r}: not known here", {"field": name})
