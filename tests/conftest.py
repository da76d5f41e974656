"""What every test can ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.live import Daemon, daemon


@pytest.fixture(scope="session")
def live() -> Iterator[Daemon]:
    """A daemon with default settings, shared: a test that stops or loads it makes its own."""
    with daemon() as running:
        yield running


@pytest.fixture(scope="session")
def strip() -> Iterator[Daemon]:
    """The same in `strip` mode."""
    with daemon("--line-endings", "strip") as running:
        yield running
