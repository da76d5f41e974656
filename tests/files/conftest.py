"""What tests of the file routes can ask for."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.files import Api, as_user
from tests.support.live import Daemon


@pytest.fixture(scope="session")
def api(live: Daemon) -> Api:
    """The shared daemon's file routes."""
    return Api(live)


@pytest.fixture(scope="session")
def user() -> Iterator[Api]:
    """Those of a shared daemon that is not root."""
    with as_user() as found:
        yield found


@pytest.fixture
def fast() -> Iterator[Path]:
    """A directory in memory where there is such a thing: for trees with very many entries."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(prefix="execd-test-", dir=memory) as name:
        yield Path(name)
