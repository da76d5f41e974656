"""What tests of the file routes can ask for."""

from __future__ import annotations

from collections.abc import Iterator

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
