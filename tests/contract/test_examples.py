"""The examples in the contract are what its schemas say, and what the daemon does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from execd.errors import CODES
from tests.support.contract import (
    CONTRACT,
    FILE,
    assert_whole_stream,
    operations,
    read_events,
    read_listing,
    resolve,
    validate,
)
from tests.support.live import Daemon


def _media() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every (place, media type, object) that can have examples."""
    for method, path, operation in operations():
        bodies = {"request": operation["requestBody"]} if "requestBody" in operation else {}
        for status, body in {**bodies, **operation["responses"]}.items():
            for media, content in resolve(body).get("content", {}).items():
                yield f"{method} {path} {status}", media, content


EXAMPLES = [
    pytest.param(media, content["schema"], example["value"], id=f"{place} {name}")
    for place, media, content in _media()
    for name, example in content.get("examples", {}).items()
]


@pytest.mark.parametrize(("media", "schema", "value"), EXAMPLES)
def test_an_example_is_what_its_schema_says(media: str, schema: dict[str, Any], value: Any) -> None:
    if "ListingLine" in str(schema):
        read_listing(value.encode())
        return
    if media in ("text/event-stream", "application/x-ndjson"):
        framed = f"{media}; charset=utf-8" if value.startswith("id:") else media
        assert_whole_stream(read_events(framed, value.encode()))
    else:
        validate(value, schema)


def test_every_json_answer_but_one_has_an_example() -> None:
    without = {
        place for place, media, content in _media() if media.endswith("json") and "examples" not in content
    }
    assert without == {"GET /capabilities 200"}  # long, and any daemon shows its own


def test_an_example_of_an_error_has_the_promises_of_its_code() -> None:
    for name, response in CONTRACT["components"]["responses"].items():
        for example in response["content"]["application/json"]["examples"].values():
            value = example["value"]
            error = CODES[value["code"]]
            assert (value["retryable"], value["executed"]) == (error.retryable, error.executed), name
            assert f"`{value['code']}`" in response["description"]


def test_every_type_of_event_and_the_three_framings_are_shown() -> None:
    content = CONTRACT["paths"]["/command"]["post"]["responses"]["200"]["content"]
    texts = [example["value"] for media in content.values() for example in media["examples"].values()]
    for kind in ("init", "stdout", "stderr", "ping", "execution_complete", "error"):
        assert any(f'"type":"{kind}"' in text for text in texts), kind
    assert any(text.startswith("id: 1\ndata: {") for text in texts)
    assert any(text.startswith("{") and "\n\n" in text for text in texts)
    assert any(text.startswith("{") and "\n\n" not in text for text in texts)


def test_parameters_and_headers_have_examples_that_fit() -> None:
    for kind in ("parameters", "headers"):
        for node in CONTRACT["components"][kind].values():
            if "example" in node:
                validate(node["example"], node["schema"])
    for _, _, operation in operations():
        for parameter in map(resolve, operation["parameters"]):
            for example in parameter.get("examples", {}).values():
                validate(example["value"], parameter["schema"])
        for header in resolve(operation["responses"]["200"])["headers"].values():
            if "example" in resolve(header):
                validate(resolve(header)["example"], resolve(header)["schema"])


def test_the_first_example_runs(live: Daemon) -> None:
    examples = CONTRACT["paths"]["/command"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    command = examples["shell"]["value"]["command"].replace("sleep 1", "sleep 0.01")
    assert "".join(e["text"] for e in live.run(command) if e["type"] == "stdout") == "1\n2\n3\n"


def test_the_streams_shown_are_the_ones_that_the_daemon_sends(live: Daemon, strip: Daemon) -> None:
    examples = CONTRACT["paths"]["/command"]["post"]["responses"]["200"]["content"]["text/event-stream"][
        "examples"
    ]
    shown = {name: example["value"] for name, example in examples.items()}
    cases = [
        (live, "success", "seq 3", "text/event-stream"),
        (live, "failure", "echo no >&2; exit 3", "text/event-stream"),
        (live, "bare", "echo hello", "*/*"),
        (strip, "stripped", "printf 'a\\n\\nb\\n'", "text/event-stream"),
    ]
    for running, name, command, accept in cases:
        answer = running.client.post("/command", json={"command": command}, headers={"Accept": accept})
        media = answer.headers["content-type"]
        real = _lasting(read_events(media, answer.content))
        assert real == _lasting(read_events(media, shown[name].encode())), name


def _lasting(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    changing = {"timestamp", "execution_time", "rusage"}
    found = []
    for event in events:
        if event["type"] != "ping":
            kept = {name: value for name, value in event.items() if name not in changing}
            found.append(kept | ({"text": ""} if event["type"] == "init" else {}))
    return found


def test_the_file_has_no_anchors_that_readers_would_have_to_follow() -> None:
    tokens = yaml.scan(FILE.read_text())
    assert not [token for token in tokens if isinstance(token, (yaml.AnchorToken, yaml.AliasToken))]
