"""Generated requests against a live daemon: every answer, and every event of every stream, is documented.

Nothing that is generated is ever run: see `tests.support.harmless`.
"""

from __future__ import annotations

import re
import shlex
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode

from tests.support.contract import (
    CONTRACT,
    assert_canonical_error,
    assert_documented,
    operations,
    read_events,
)
from tests.support.harmless import ARGUMENTS, COMMANDS, harmless
from tests.support.live import Daemon, daemon

MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
EXAMPLES = 15
COMMAND_EXAMPLES = 100
HEADERS = {"Accept": "text/event-stream"}
SAFE = {*COMMANDS, *map(shlex.join, ARGUMENTS)}
TYPES = {"init", "stdout", "stderr", "ping", "execution_complete", "error"}

REQUESTS = [
    pytest.param(method, path, mode, id=f"{method} {path} {mode.value}")
    for method, path, _ in operations()
    for mode in MODES
    if mode is GenerationMode.POSITIVE or "{" in path or method == "DELETE"  # else nothing can be wrong
    if method != "POST"
]

schema = schemathesis.openapi.from_dict(CONTRACT)


class Fuzzed:
    """A daemon with some commands, and what was seen of it."""

    def __init__(self, running: Daemon) -> None:
        self.daemon = running
        self.ids = [running.run(command)[0]["text"] for command in ("seq 100000", "exit 3", "true")]
        self.ids.append(running.background("sleep 300"))
        self.events: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()

    def send(self, case: Case[Any]) -> None:
        """Send it with real ids in place of some made-up ones, and check the answer in every way."""
        for container in (case.path_parameters, case.query):
            made_up = container.get("id")
            if isinstance(made_up, str) and re.fullmatch("[0-9a-f]{32}", made_up):
                container["id"] = (*self.ids, made_up)[zlib.crc32(made_up.encode()) % (len(self.ids) + 1)]
        case.body = harmless(case.body)
        response = case.call(base_url=self.daemon.url, headers=HEADERS)
        case.validate_response(response)
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        answer = httpx.Response(response.status_code, headers=headers, content=response.content)
        self.statuses[answer.status_code] += 1
        assert_documented(case.method, case.operation.path, answer)
        if answer.status_code >= 400:
            if case.method != "HEAD":
                assert_canonical_error(answer, answer.json()["code"])
        elif "event-stream" in answer.headers.get("content-type", ""):
            events = read_events(answer.headers["content-type"], answer.content)
            self.events.update(event["type"] for event in events)
            assert self.daemon.status(answer.headers["x-execd-command-id"])["content"] in SAFE


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    with daemon("--ping-interval", "50ms") as running:
        yield Fuzzed(running)


def _fuzz(fuzzed: Fuzzed, method: str, path: str, mode: GenerationMode, examples: int) -> None:
    strategy = schema[path][method].as_strategy(generation_mode=mode)

    @given(case=strategy)
    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def send(case: Case[Any]) -> None:
        fuzzed.send(case)

    send()


def _boundaries(method: str, path: str) -> Iterator[Case[Any]]:
    operation: Any = schema[path][method]
    yield from schema.iter_coverage_cases(
        operation, generation_modes=MODES, generation_config=schema.config.generation
    )


@pytest.mark.parametrize("mode", MODES)
def test_no_body_gets_an_answer_or_an_event_that_is_not_documented(
    fuzzed: Fuzzed, mode: GenerationMode
) -> None:
    before = fuzzed.events.copy()
    _fuzz(fuzzed, "POST", "/command", mode, COMMAND_EXAMPLES)
    if mode is GenerationMode.POSITIVE:
        seen = fuzzed.events - before
        assert set(seen) == TYPES
        assert min(seen.values()) > 1, seen


@pytest.mark.parametrize(("method", "path"), [item[:2] for item in operations()])
def test_no_boundary_value_or_method_gets_an_answer_that_is_not_documented(
    fuzzed: Fuzzed, method: str, path: str
) -> None:
    sent = 0
    for case in _boundaries(method, path):
        fuzzed.send(case)
        sent += 1
    assert sent


@pytest.mark.parametrize(("method", "path", "mode"), REQUESTS)
def test_no_request_gets_an_answer_that_is_not_documented(
    fuzzed: Fuzzed, method: str, path: str, mode: GenerationMode
) -> None:
    _fuzz(fuzzed, method, path, mode, EXAMPLES)
    assert fuzzed.daemon.client.get("/ping").status_code == 200
