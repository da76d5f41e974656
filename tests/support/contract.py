"""The contract as tests use it: its schemas, its documented answers, the one shape of errors."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import httpx
import yaml
from jsonschema import Draft202012Validator, FormatChecker  # type: ignore[import-untyped]
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from execd.errors import CODES
from tests.support import sse
from tests.support.live import ROOT

FILE = ROOT / "openapi" / "execd-api.yaml"
CONTRACT: dict[str, Any] = yaml.safe_load(FILE.read_text())
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
HTTP_HEADERS = {"content-type", "content-length", "transfer-encoding", "connection"}
"""Headers that HTTP itself needs; every other one must be documented."""
LISTINGS = ("/directories/list", "/files/search")
"""Routes whose streams are of entries, not of events."""
BODY_IS_OPTIONAL = {"/files/replace"}
"""Success there has a body only if the request wants one."""

_URI = "urn:execd:contract"
_registry: Registry[Any] = Registry().with_resource(
    _URI, Resource.from_contents(CONTRACT, default_specification=DRAFT202012)
)
_validators: dict[str, Draft202012Validator] = {}


def resolve(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node itself, or what its `$ref` points at."""
    while "$ref" in node:
        found: Any = CONTRACT
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every (method, path template, operation); methods in capitals."""
    for path, item in CONTRACT["paths"].items():
        for method in METHODS:
            if method in item:
                yield method.upper(), path, item[method]


def validate(value: object, schema: Mapping[str, Any] | str) -> None:
    """Fail unless `value` is as the schema (a schema object, or the name of a component) wants it."""
    if isinstance(schema, str):
        schema = {"$ref": f"#/components/schemas/{schema}"}
    key = json.dumps(schema, sort_keys=True)
    if key not in _validators:
        absolute = json.loads(key.replace('"#/components/', f'"{_URI}#/components/'))
        _validators[key] = Draft202012Validator(absolute, registry=_registry, format_checker=FormatChecker())
    _validators[key].validate(value)


def read_events(content_type: str, body: bytes) -> list[dict[str, Any]]:
    """Every event of a whole stream in any of the three framings, each validated against the contract."""
    if content_type == "text/event-stream; charset=utf-8":
        frames = sse.parse(body)
        events = [json.loads(frame.data) for frame in frames]
        last_id = ""
        for frame, event in zip(frames, events, strict=True):
            last_id = str(event.get("eid", last_id))
            assert (frame.kind, frame.last_id) == ("message", last_id)
    else:
        separator = {"application/x-ndjson": b"\n", "text/event-stream": b"\n\n"}[content_type]
        lines = body.split(separator)
        assert lines.pop() == b"", "the last frame is not finished"
        events = [json.loads(line) for line in lines]
    for event in events:
        validate(event, "Event")
    return events


def assert_whole_stream(events: list[dict[str, Any]]) -> None:
    """One `init` first, one terminal event last, and event ids that grow."""
    kinds = [event["type"] for event in events]
    assert kinds[0] == "init"
    assert kinds.count("init") == 1
    assert kinds[-1] in ("execution_complete", "error")
    assert kinds.count("execution_complete") + kinds.count("error") == 1
    eids = [event["eid"] for event in events if "eid" in event]
    assert all(a < b for a, b in itertools.pairwise(eids)), eids


def read_listing(body: bytes) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The entries of a whole stream of a listing, and the line that ends it, all as the contract has them."""
    lines = body.split(b"\n")
    assert lines.pop() == b"", "the last line is not finished"
    *entries, end = [json.loads(line) for line in lines]
    for entry in entries:
        validate(entry, "Entry")
    validate(end, "ListingEnd")
    return entries, end


def assert_documented(method: str, path: str, answer: httpx.Response) -> None:
    """Status, headers and body are as the contract has them for this operation."""
    item = CONTRACT["paths"][path]
    operation = item.get("get" if method == "HEAD" else method.lower())
    if operation is None:  # a method that the path does not have: any of its operations says so
        assert answer.status_code in (400, 401, 405, 413, 431)
        operation = next(item[name] for name in METHODS if name in item)
    status = str(answer.status_code)
    assert status in operation["responses"], f"{method} {path} answered {status}: {answer.text[:300]}"
    documented = resolve(operation["responses"][status])
    _assert_headers(answer, documented.get("headers", {}))
    content = documented.get("content")
    if content is None or (path in BODY_IS_OPTIONAL and status == "200" and not answer.content):
        # RFC 9110 8.6: a length in a 304 would be that of the file.
        assert answer.headers.get("content-length") == (None if status == "304" else "0")
        assert "content-type" not in answer.headers
        return
    media = answer.headers["content-type"].partition(";")[0]
    assert media in content, f"{method} {path} answered {media}"
    if method == "HEAD":
        assert answer.content == b""
    elif media == "application/json":
        assert answer.content.isascii()
        validate(answer.json(), content[media]["schema"])
    elif path in LISTINGS:
        read_listing(answer.content)
    elif media in ("text/event-stream", "application/x-ndjson"):
        assert_whole_stream(read_events(answer.headers["content-type"], answer.content))
    elif media == "application/yaml":
        validate(yaml.safe_load(answer.text), content[media]["schema"])


def _assert_headers(answer: httpx.Response, documented: Mapping[str, Any]) -> None:
    names = [name for name, _ in answer.headers.multi_items()]
    assert len(names) == len(set(names)), f"a header twice: {names}"
    by_name = {name.lower(): resolve(spec) for name, spec in documented.items()}
    undocumented = set(names) - set(by_name) - HTTP_HEADERS
    assert not undocumented, undocumented
    for name, spec in by_name.items():
        assert name in answer.headers or not spec.get("required"), f"no {name} in {names}"
        if name in answer.headers:
            validate(header_value(answer.headers[name], spec["schema"]), spec["schema"])


def header_value(text: str, schema: Mapping[str, Any]) -> object:
    """A header's text as the type that its schema names."""
    kind = resolve(schema)["type"]
    if kind == "boolean":
        return {"true": True, "false": False}[text]
    return int(text) if kind == "integer" else text


def assert_canonical_error(answer: httpx.Response, code: str) -> dict[str, Any]:
    """The one shape of errors, with the code's own status and promises; its body."""
    error = CODES[code]
    body: dict[str, Any] = answer.json()
    validate(body, "Error")
    assert answer.content.isascii()
    assert (answer.status_code, body["code"]) == (error.status, code), body
    assert (body["retryable"], body["executed"]) == (error.retryable, error.executed)
    assert body["message"].strip()
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["x-request-id"]
    assert answer.headers["date"].endswith("GMT")
    retry_after = answer.headers.get("retry-after")
    assert retry_after == (None if error.retry_after is None else str(error.retry_after))
    assert ("allow" in answer.headers) == (error.status == 405)
    return body
