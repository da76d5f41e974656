"""Every failure as one JSON shape: code, message, retryable, executed, and details where there are any."""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Scope

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


def answer_to(error: Exception, scope: Scope, request_id: str) -> Response:
    """The answer to whatever was raised before an answer had begun: the one table of this layer."""
    if isinstance(error, ExecdError):
        return error_response(error)
    if isinstance(error, HTTPException):
        return _answer_to_router(error, scope)
    # A fault of ours: logged with its traceback, told without it.
    log.exception("request_failed", error, request_id=request_id)
    return error_response(
        InternalError(f"execd failed on this request; its log says why under request id {request_id}")
    )


def _answer_to_router(error: HTTPException, scope: Scope) -> Response:
    where = f"{scope['method']} {scope['path'][:200]}"
    if error.status_code == 404:
        return error_response(NotFound(f"no route {where}"))
    if error.status_code == 405:
        allow = ", ".join(sorted(_allowed(scope)))
        return error_response(MethodNotAllowed(f"no {where}; allowed: {allow}"), {"Allow": allow})
    return error_response(BadRequest(f"{where}: {HTTPStatus(error.status_code).phrase}"))


def _allowed(scope: Scope) -> set[str]:
    # The router names only the methods of the first route with that path; all of them are meant.
    routes: list[Route] = scope["router"].routes
    path = scope["path"]
    return {method for route in routes if route.path_regex.match(path) for method in route.methods or ()}
