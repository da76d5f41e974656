"""forms PORT: Starlette's own way with multipart bodies, `request.form()` and a copy, served by uvicorn."""

from __future__ import annotations

import json
import os
import sys

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_COPIED = 1 << 20


async def upload(request: Request) -> Response:
    """Write the files of pairs of `metadata` and `file`."""
    async with request.form(max_files=1_000_000, max_fields=1_000_000) as form:
        for metadata, file in zip(form.getlist("metadata"), form.getlist("file"), strict=True):
            path = json.loads(metadata if isinstance(metadata, str) else await metadata.read())["path"]
            os.makedirs(os.path.dirname(path), exist_ok=True)  # as it is usually done
            with open(path, "wb") as out:  # noqa: ASYNC230
                while data := await file.read(_COPIED):  # type: ignore[union-attr]
                    out.write(data)
    return Response()


if __name__ == "__main__":
    app = Starlette(
        routes=[Route("/files/upload", upload, methods=["POST"]), Route("/ping", lambda _: Response())]
    )
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        log_level="error",
        access_log=False,
    )
