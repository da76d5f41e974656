"""/files and /directories: looking at them and changing them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from execd.api import query
from execd.api.body import parse_body
from execd.api.framing import ascii_json
from execd.models.files import Moves, Permissions, Replacements

if TYPE_CHECKING:
    from execd.api.state import TypedRequest


async def file_info(request: TypedRequest) -> Response:
    """What lstat says of each path, by the strings that were asked for."""
    found = await request.state["files"].info(query.values(request, "path"))
    return Response(ascii_json(found), media_type="application/json")


async def set_permissions(request: TypedRequest) -> Response:
    """Set mode, owner and group of files."""
    await request.state["files"].set_permissions((await parse_body(request, Permissions)).root)
    return Response()


async def move_files(request: TypedRequest) -> Response:
    """Rename files and directories; never over something that is there."""
    await request.state["files"].move((await parse_body(request, Moves)).root)
    return Response()


async def replace_contents(request: TypedRequest) -> Response:
    """Replace text in files; tell how often if that is wanted."""
    verbose = query.flag(request, "verbose")
    wanted = await parse_body(request, Replacements)
    counts = await request.state["replacements"].replace(wanted.root)
    if not verbose:
        return Response()
    found = {path: {"replacedCount": count} for path, count in counts.items()}
    return Response(ascii_json(found), media_type="application/json")


async def delete_files(request: TypedRequest) -> Response:
    """Remove files and links."""
    query.required(request, "path")
    await request.state["files"].delete(query.values(request, "path"))
    return Response()


async def make_directories(request: TypedRequest) -> Response:
    """Make directories and those above them."""
    await request.state["directories"].make((await parse_body(request, Permissions)).root)
    return Response()


async def remove_directories(request: TypedRequest) -> Response:
    """Remove directories with all that is in them."""
    query.required(request, "path")
    await request.state["directories"].remove(query.values(request, "path"))
    return Response()
