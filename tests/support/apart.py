"""Running a function in a fresh process: for what changes or depends on the whole process."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from tests.support.live import ROOT


def apart(function: Callable[[], None], *wrapper: str, env: dict[str, str] | None = None) -> None:
    """Call a function of a module in a new interpreter; fail if it fails there.

    `wrapper` is put before the command line, `env` replaces the environment.
    """
    code = f"from {function.__module__} import {function.__name__} as function; function()"
    done = subprocess.run(
        [*wrapper, sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, f"{function.__name__}, apart:\n{done.stdout}\n{done.stderr}"
