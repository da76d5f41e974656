"""/ping says that the event loop answers, /readyz that a command really ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.responses import Response

from execd.api.framing import ascii_json
from execd.errors import NotReady

if TYPE_CHECKING:
    from execd.api.state import TypedRequest


async def ping(_: TypedRequest) -> Response:
    """Liveness: 200 and nothing else."""
    return Response()


async def readyz(request: TypedRequest) -> Response:
    """Readiness: every check with its detail; 503 with the reasons if one failed."""
    report = await request.state["readiness"].report()
    checks = {name: {"ok": check.ok, "detail": check.detail} for name, check in report.checks.items()}
    if not report.ready:
        reasons = "; ".join(
            f"{name}: {check.detail}" for name, check in report.checks.items() if not check.ok
        )
        raise NotReady(f"not ready: {reasons}", {"checks": checks})
    return Response(ascii_json({"ready": True, "checks": checks}), media_type="application/json")
