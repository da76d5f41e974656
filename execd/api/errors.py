"""Every failure as one JSON shape: code, message, retryable, executed, and details where there are any."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from execd.api.framing import ascii_json
from execd.errors import (
    BadRequest,
    ExecdError,
    InternalError,
    MethodNotAllowed,
    NotFound,
)
from execd.logs import log


def error_body(error: ExecdError) -> bytes:
    """The JSON of an error."""
    body: dict[str, object] = {
        "code": error.code,
        "message": error.message or error.code,
        "retryable": error.retryable,
        "executed": error.executed,
    }
    if error.details:
        body["details"] = error.details
    return ascii_json(body)


def error_response(error: ExecdError, headers: dict[str, str] | None = None) -> Response:
    """The answer that an error becomes."""
    return Response(
        error_body(error),
        status_code=error.status,
        headers=error.headers | (headers or {}),
        media_type="application/json",
    )


async def on_execd_error(_: Request, error: Exception) -> Response:
    """A situation that has a name."""
    assert isinstance(error, ExecdError)
    return error_response(error)


async def on_http_exception(request: Request, error: Exception) -> Response:
    """What the router raises: no such route, or not for this method."""
    assert isinstance(error, HTTPException)
    where = f"{request.method} {request.url.path[:200]}"
    if error.status_code == 404:
        return error_response(NotFound(f"no route {where}"))
    if error.status_code == 405:
        allow = ", ".join(sorted(_allowed(request)))
        return error_response(MethodNotAllowed(f"no {where}; allowed: {allow}"), {"Allow": allow})
    return error_response(BadRequest(f"{where}: {HTTPStatus(error.status_code).phrase}"))


def _allowed(request: Request) -> set[str]:
    # The router names only the methods of the first route with that path; all of them are meant.
    routes: list[Route] = request.scope["router"].routes
    path = request.scope["path"]
    return {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}


def internal_error(error: BaseException, request_id: str) -> InternalError:
    """A fault of ours: logged with its traceback, told without it."""
    log.exception("request_failed", error, request_id=request_id)
    return InternalError(f"execd failed on this request; its log says why under request id {request_id}")
