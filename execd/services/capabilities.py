"""What this daemon is and can do here: versions, limits, features, facts about the kernel."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from dataclasses import fields
from typing import Any

from execd import __version__
from execd.posix import libc
from execd.services import commands, listings, pipes, readiness
from execd.services.engine import LINGERING_FACTOR, Engine
from execd.settings import Settings

_SHOWN = frozenset(
    {
        "list_ceiling",
        "list_depth",
        "list_limit",
        "list_timeout",
        "max_executions",
        "max_requests",
        "max_body",
        "output_memory",
        "output_disk",
        "output_total",
        "min_free_disk",
        "retention",
        "max_records",
        "event_text",
        "ping_interval",
        "drain_quiet",
        "drain_timeout",
        "kill_grace",
        "keep_alive",
        "shutdown_timeout",
    }
)
_SECONDS = frozenset(
    {
        "list_timeout",
        "retention",
        "ping_interval",
        "drain_quiet",
        "drain_timeout",
        "kill_grace",
        "keep_alive",
        "shutdown_timeout",
    }
)
_BYTES = frozenset({"max_body", "output_memory", "output_disk", "output_total", "event_text"})


class Capabilities:
    """Facts are gathered once, in a thread; `usage` each time."""

    def __init__(self, engine: Engine, settings: Settings) -> None:
        self._engine = engine
        self._settings = settings
        self._facts: dict[str, Any] | None = None

    async def describe(self) -> dict[str, Any]:
        """The body of `GET /capabilities`."""
        if self._facts is None:
            loop = asyncio.get_running_loop()
            self._facts = await loop.run_in_executor(self._engine.files, self._gather)
        return self._facts | {"usage": self._engine.statistics()}

    def _gather(self) -> dict[str, Any]:
        from importlib import metadata  # 1 MB and 20 ms: not before somebody asks

        settings = self._settings
        limits = {
            _named(spec.name): getattr(settings, spec.name)
            for spec in fields(settings)
            if spec.name in _SHOWN
        }
        limits |= {
            "list_page_bytes": listings.PAGE_BYTES,
            "max_left_behind": settings.max_executions * LINGERING_FACTOR,
            "logs_page_bytes": commands.PAGE_BYTES,
            "readiness_timeout_seconds": readiness.TIMEOUT,
            "unfinished_line_hold_seconds": pipes.HOLD_SECONDS,
        }
        shell = shutil.which("bash") or shutil.which("sh")
        return {
            "name": "execd",
            "version": __version__,
            "limits": limits,
            "features": {
                "commands": True,
                "argv": True,
                "background": True,
                "framings": ["sse", "ndjson", "bare"],
                "line_endings": settings.line_endings,
                "access_token": bool(settings.access_token),
                "identity_switch": os.geteuid() == 0,
                "kept_output_on_disk": self._engine.state.fd >= 0 and settings.output_disk > 0,
                "subreaper": self._engine.subreaper,
                "spawn_without_fork": libc.CAN_SPAWN,
                "shell": shell,
                "state_directory": self._engine.state.path,
                "roots": settings.root_list,
            },
            "kernel": {
                "release": platform.release(),
                "machine": platform.machine(),
                "cgroup_version": 2 if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else 1,
                "cpu_count": os.cpu_count(),
                "page_bytes": os.sysconf("SC_PAGE_SIZE"),
            },
            "versions": {
                "python": platform.python_version(),
                "implementation": sys.implementation.name,
                **{name: metadata.version(name) for name in ("starlette", "uvicorn", "uvloop", "pydantic")},
            },
        }


def _named(setting: str) -> str:
    if setting in _SECONDS:
        return f"{setting}_seconds"
    if setting in _BYTES:
        return f"{setting}_bytes"
    return f"{setting}_percent" if setting == "min_free_disk" else setting
