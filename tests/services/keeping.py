"""A store of kept output on a real disk and a running loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from execd.services.blocks import STDOUT
from execd.services.output import OutputLog
from execd.services.statedir import StateDirectory
from execd.services.store import OutputStore, Spool
from execd.settings import Settings

MEMORY = 64 * 1024


@dataclass
class Keeper:
    """A store, and logs with spools in it. Nothing runs but what a test asks for."""

    store: OutputStore
    settings: Settings
    directory: Path
    made: int = 0

    def kept(self) -> tuple[OutputLog, Spool]:
        """The log and the spool of one more execution."""
        self.made += 1
        log = OutputLog(MEMORY, self.settings.output_disk)
        return log, self.store.spool(f"id{self.made}", log)

    def files(self) -> list[str]:
        """The files of kept output, in order."""
        return sorted(path.name for path in self.directory.glob("*.out"))

    async def written(self, spool: Spool, keep: int = 0) -> None:
        """Move output to disk and wait until it is there."""
        spool.relieve(keep)
        await self.settled(spool)

    async def settled(self, *spools: Spool) -> None:
        """Wait until nothing is being written any more."""
        async with asyncio.timeout(10):
            while any(spool.being_written for spool in spools):  # noqa: ASYNC110  (nothing announces it)
                await asyncio.sleep(0.001)


@asynccontextmanager
async def keeper(directory: Path, **settings: Any) -> AsyncIterator[Keeper]:
    """`settings` as in Settings; `min_free_disk` is 0 unless given."""
    given: dict[str, Any] = {"min_free_disk": 0, "state_dir": str(directory), **settings}
    chosen = Settings(**given)
    state = StateDirectory(chosen.state_path)
    with ThreadPoolExecutor(4) as executor:
        store = OutputStore(state, chosen, executor, asyncio.get_running_loop())
        yield Keeper(store, chosen, directory)
    state.close()


def fill(log: OutputLog, size: int, byte: bytes = b"x") -> None:
    """Append `size` bytes to stdout."""
    log.append(STDOUT, byte * size)
