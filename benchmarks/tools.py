"""The C programs that measure and that are the floors, compiled when a run begins."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

FLOORS = Path(__file__).parent / "floors"
Sample = Mapping[str, float]
_LIMIT_SECONDS = 300


class Tools:
    """Where the compiled floors are and how they are run. Use as a context: it owns a directory."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="execd-bench-")
        self.path = Path(self._directory.name)
        self._compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
        self.native = self._compiler is not None
        if not self.native:
            print("!" * 78)
            print("!! no C compiler: floors and clients are written in Python. They are slower than")
            print("!! what they measure, so ratios look better and throughput worse than they are.")
            print("!" * 78)

    def __enter__(self) -> Tools:
        return self

    def __exit__(self, *_: object) -> None:
        self._directory.cleanup()

    def argv(self, name: str, *arguments: object) -> list[str]:
        """The command line of one tool, compiled on its first use."""
        words = [str(argument) for argument in arguments]
        if self._compiler is None:
            return [sys.executable, str(FLOORS / "fallback.py"), name, *words]
        program = self.path / name
        if not program.exists():
            command = [self._compiler, "-O3", "-Wall", "-o", str(program), str(FLOORS / f"{name}.c")]
            subprocess.run(command, check=True)
        return [str(program), *words]

    def run(self, name: str, *arguments: object) -> Sample:
        """Run one tool to its end; what it measured."""
        return self.result(self.start(name, *arguments))

    def start(self, name: str, *arguments: object) -> subprocess.Popen[bytes]:
        """Start one tool; `result` waits for it."""
        return subprocess.Popen(self.argv(name, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def result(self, process: subprocess.Popen[bytes]) -> Sample:
        """Wait for a started tool; what it measured."""
        out, err = process.communicate(timeout=_LIMIT_SECONDS)
        if process.returncode:
            raise RuntimeError(f"{process.args!r} failed: {err.decode(errors='replace')[-500:]}")
        measured: dict[str, float] = json.loads(out)
        return measured


def interleaved(rounds: int, **measures: Callable[[], Sample] | None) -> dict[str, list[Sample]]:
    """Run every measure once per round, in turn, so that a slow moment of the machine hits them all."""
    found: dict[str, list[Sample]] = {name: [] for name, measure in measures.items() if measure}
    for _ in range(rounds):
        for name, measure in measures.items():
            if measure:
                found[name].append(measure())
    return found
