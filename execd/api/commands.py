"""/command: run, status, logs, interrupt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from execd.api import query
from execd.api.body import parse_body
from execd.api.framing import Framing, ascii_json
from execd.api.streams import EventStream, Started
from execd.models.commands import RunCommandRequest, status_json

if TYPE_CHECKING:
    from execd.api.state import TypedRequest

CURSOR_HEADER = "EXECD-COMMANDS-TAIL-CURSOR"


async def run_command(request: TypedRequest) -> Started | EventStream:
    """Start a command; answer with its events, or at once if it is to run in the background."""
    command = await parse_body(request, RunCommandRequest)
    frames = Framing.from_accept(request.headers.get("accept", ""))
    execution = await request.state["commands"].start(command)
    if command.background:
        return Started(execution, frames)
    return EventStream(execution, frames, request.state["settings"])


async def interrupt_command(request: TypedRequest) -> Response:
    """End a command and everything it started."""
    await request.state["commands"].interrupt(query.required(request, "id"))
    return Response()


async def command_status(request: TypedRequest) -> Response:
    """Where a command stands."""
    execution = request.state["commands"].get(request.path_params["id"])
    return Response(ascii_json(status_json(execution)), media_type="application/json")


async def command_logs(request: TypedRequest) -> Response:
    """A page of a command's output, stdout and stderr together."""
    cursor = query.whole_number(request, "cursor", 0, 2**63 - 1) or 0
    page = await request.state["commands"].page(request.path_params["id"], cursor)
    headers = {
        CURSOR_HEADER: str(page.next),
        "X-Execd-Truncated": "true" if page.more else "false",
        "X-Execd-Dropped-Bytes": str(max(0, page.start - cursor)),
    }
    if page.more:
        headers["X-Execd-Truncated-Reason"] = "bytes"
    return Response(page.data, headers=headers, media_type="text/plain; charset=utf-8")
