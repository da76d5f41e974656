"""Generated requests against a live daemon: every answer, and every event of every stream, is documented.

Nothing that is generated is ever run, and no path that is generated is ever used: see
`tests.support.harmless` and `tests.support.harmless_files`.
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
from schemathesis import Case, GenerationMode, Response
from schemathesis.specs.openapi import checks

from tests.support.contract import (
    BODY_IS_OPTIONAL,
    CONTRACT,
    assert_canonical_error,
    assert_documented,
    operations,
    read_events,
)
from tests.support.harmless import ARGUMENTS, COMMANDS, harmless
from tests.support.harmless_files import ROUTES as FILE_ROUTES
from tests.support.harmless_files import Sandbox
from tests.support.live import Daemon, daemon

MODES = [GenerationMode.POSITIVE, GenerationMode.NEGATIVE]
EXAMPLES = 15
COMMAND_EXAMPLES = 100
MULTIPART = {"/files/upload"}
"""Generated bodies there are as multipart as JSON can be told to be: seldom a pair in the right order."""
HEADERS = {"Accept": "text/event-stream"}
SAFE = {*COMMANDS, *map(shlex.join, ARGUMENTS)}
TYPES = {"init", "stdout", "stderr", "ping", "execution_complete", "error"}

REQUESTS = [
    pytest.param(method, path, mode, id=f"{method} {path} {mode.value}")
    for method, path, _ in operations()
    for mode in MODES
    if mode is GenerationMode.POSITIVE or "{" in path or method != "GET"  # else nothing can be wrong
    if path != "/command" or method != "POST"
]

schema = schemathesis.openapi.from_dict(CONTRACT)


class Fuzzed:
    """A daemon with some commands and files, and what was seen of it."""

    def __init__(self, running: Daemon, sandbox: Sandbox) -> None:
        self.daemon = running
        self.sandbox = sandbox
        self.ids = [running.run(command)[0]["text"] for command in ("seq 100000", "exit 3", "true")]
        self.ids.append(running.background("sleep 300"))
        self.events: Counter[str] = Counter()
        self.statuses: Counter[tuple[str, str, int]] = Counter()

    def send(self, case: Case[Any]) -> None:
        """Send it with real ids in place of some made-up ones, and check the answer in every way."""
        for container in (case.path_parameters, case.query):
            made_up = container.get("id")
            if isinstance(made_up, str) and re.fullmatch("[0-9a-f]{32}", made_up):
                container["id"] = (*self.ids, made_up)[zlib.crc32(made_up.encode()) % (len(self.ids) + 1)]
        path = case.operation.path
        if path.startswith(FILE_ROUTES):
            self.sandbox.fill()
            case.query = self.sandbox.query(path, case.query)
            case.body = self.sandbox.body(path, case.body)
        else:
            case.body = harmless(case.body)
        response = case.call(base_url=self.daemon.url, headers=HEADERS)
        case.validate_response(response, excluded_checks=_beyond_schemas(case, response))
        headers = [(name, value) for name, values in response.headers.items() for value in values]
        answer = httpx.Response(response.status_code, headers=headers, content=response.content)
        self.statuses[case.method, path, answer.status_code] += 1
        assert_documented(case.method, path, answer)
        if answer.status_code >= 400:
            if case.method != "HEAD" and not answer.json().get("details", {}).get("done"):
                assert_canonical_error(answer, answer.json()["code"])
        elif "event-stream" in answer.headers.get("content-type", ""):
            events = read_events(answer.headers["content-type"], answer.content)
            self.events.update(event["type"] for event in events)
            assert self.daemon.status(answer.headers["x-execd-command-id"])["content"] in SAFE


def _beyond_schemas(case: Case[Any], response: Response) -> list[Any]:
    """Checks that would ask too much: what they want is not so here, or no schema can say it."""
    path = case.operation.path
    found: list[Any] = []
    if path.startswith(FILE_ROUTES):  # that a directory is where a file is wanted
        found.append(checks.positive_data_acceptance)
    if path in BODY_IS_OPTIONAL and not response.content:
        found += [checks.content_type_conformance, checks.response_schema_conformance]
    unseen = any(name.startswith("x-schemathesis") for name in case.query)  # unknown parameters are ignored
    unseen |= any(
        name != "path" and isinstance(value, list) for name, value in case.query.items()
    )  # the first
    if unseen or response.status_code in (412, 431):  # refusals, too
        found.append(checks.negative_data_rejection)
    return found


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    top = tmp_path_factory.mktemp("fuzzed")
    with daemon("--ping-interval", "50ms", "--roots", str(top)) as running:
        assert running.client.get("/files/info?path=/etc").status_code == 403
        yield Fuzzed(running, Sandbox(top))


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
    before = fuzzed.statuses.copy()
    _fuzz(fuzzed, method, path, mode, EXAMPLES)
    if mode is GenerationMode.POSITIVE and path.startswith(FILE_ROUTES) and path not in MULTIPART:
        seen = {status for _, _, status in fuzzed.statuses - before}
        assert seen & {200, 201}, f"no request succeeded: {seen}"
    assert fuzzed.daemon.client.get("/ping").status_code == 200
