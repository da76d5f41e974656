"""What the API says about itself: /capabilities, /openapi.yaml, /docs."""

from __future__ import annotations

import asyncio
from functools import lru_cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from starlette.responses import Response

from execd.api.framing import ascii_json
from execd.errors import NotFound

if TYPE_CHECKING:
    from execd.api.state import TypedRequest

CONTRACT: Final = "execd-api.yaml"
_ASSETS: Final = {
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
}
_ASSET_PACKAGE: Final = "swagger_ui"
_PAGE: Final = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>execd API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<style>#api .renderedMarkdown td, #api .renderedMarkdown th { padding-right: 1em; }</style>
</head>
<body>
<div id="api"></div>
<noscript>This page needs JavaScript; the contract is at <a href="openapi.yaml">openapi.yaml</a>.</noscript>
<script src="docs/swagger-ui-bundle.js"></script>
<script>
SwaggerUIBundle({url: "openapi.yaml", dom_id: "#api", deepLinking: true, validatorUrl: null});
</script>
</body>
</html>
"""


async def capabilities(request: TypedRequest) -> Response:
    """Versions, limits, features, facts about the kernel, and what is in use."""
    body = await request.state["capabilities"].describe()
    return Response(ascii_json(body), media_type="application/json")


async def openapi(_: TypedRequest) -> Response:
    """The contract, as it is in the source."""
    return Response(_contract(), media_type="application/yaml")


async def docs(_: TypedRequest) -> Response:
    """A readable page made from the contract; needs nothing from outside."""
    return Response(_PAGE, media_type="text/html")


async def docs_asset(request: TypedRequest) -> Response:
    """A script or style sheet of that page."""
    name = request.path_params["asset"]
    if name not in _ASSETS:
        raise NotFound(f"no file {name[:80]!r} here")
    body = await asyncio.get_running_loop().run_in_executor(None, _asset, name)
    headers = {"Cache-Control": "public, max-age=86400"}
    return Response(body, headers=headers, media_type=_ASSETS[name])


@lru_cache
def _contract() -> bytes:
    packaged = resources.files("execd").joinpath(CONTRACT)  # in a wheel
    if packaged.is_file():
        return packaged.read_bytes()
    return (Path(__file__).parents[2] / "openapi" / CONTRACT).read_bytes()


def _asset(name: str) -> bytes:
    spec = find_spec(_ASSET_PACKAGE)  # found, not imported: only its files are wanted
    locations = spec.submodule_search_locations if spec else None
    if not locations:
        raise NotFound("the page's files are not installed; the contract is at /openapi.yaml")
    return (Path(next(iter(locations))) / "static" / name).read_bytes()
