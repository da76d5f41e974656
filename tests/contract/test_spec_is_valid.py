"""The contract is valid OpenAPI 3.1, and strict where it speaks for us."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from openapi_spec_validator import OpenAPIV31SpecValidator

from execd import __version__
from execd.api import uploads
from tests.support.contract import CONTRACT, LISTINGS, operations, resolve

SCHEMAS: dict[str, Any] = CONTRACT["components"]["schemas"]
FILE_ROUTES = ("/files", "/directories")
CONFLICTING = {"/files/replace", "/files/mv", "/directories"}
OPEN = {"EventFrame"}
"""What an SSE parser hands on, not JSON of ours: parsers add fields of their own."""


def test_the_contract_is_valid_openapi() -> None:
    assert CONTRACT["openapi"].startswith("3.1.")
    assert [str(error) for error in OpenAPIV31SpecValidator(CONTRACT).iter_errors()] == []


def test_the_contract_has_the_version_of_the_package() -> None:
    assert CONTRACT["info"]["version"] == __version__


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_a_valid_schema_and_described(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])
    assert name == "Capabilities" or SCHEMAS[name]["description"]


@pytest.mark.parametrize("name", sorted(SCHEMAS.keys() - OPEN))
def test_an_object_allows_no_field_that_is_not_listed(name: str) -> None:
    for schema in _objects(SCHEMAS[name]):
        assert "additionalProperties" in schema
        assert schema["additionalProperties"] is not True
        assert set(schema.get("required", ())) <= set(schema.get("properties", ()))


def _objects(node: object) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("type") == "object" or (isinstance(node.get("type"), list) and "object" in node["type"]):
            yield node
        for child in node.values():
            yield from _objects(child)
    elif isinstance(node, list):
        for child in node:
            yield from _objects(child)


def test_every_component_is_used() -> None:
    text = str(CONTRACT)
    for kind, components in CONTRACT["components"].items():
        for name in components:
            used = f"#/components/{kind}/{name}'" in text
            assert used or kind == "securitySchemes", f"{kind}/{name} is used by nothing"


@pytest.mark.parametrize(("method", "path", "operation"), list(operations()))
def test_an_operation_is_explained_and_lists_every_way_it_can_end(
    method: str, path: str, operation: dict[str, Any]
) -> None:
    assert operation["summary"]
    assert operation["description"]
    assert operation["operationId"]
    assert operation["tags"]
    assert set(operation["tags"]) <= {tag["name"] for tag in CONTRACT["tags"]}
    wanted = {"200", "400", "405", "413", "431", "500"}
    wanted |= set() if path in ("/ping", "/readyz") else {"401"}
    wanted |= set() if path == "/ping" else {"503"}
    wanted |= {"404"} if "{" in path or method == "DELETE" else set()
    wanted |= {"408", "429"} if method == "POST" else set()
    if path.startswith(FILE_ROUTES):
        wanted = wanted - {"429"} | {"403", "404"}
        wanted |= {"507"} if changes_files(method, path) else set()
        wanted |= {"409"} if method == "POST" and path in CONFLICTING else set()
        wanted |= {"206", "304", "416"} if path == "/files/download" else set()
    if path in uploads.PATHS:
        wanted = wanted - {"413"} | {"408"}
        wanted |= {"201", "412"} if method == "PUT" else set()
    if path in LISTINGS:
        wanted = wanted - {"429"} | {"403", "404"}
    assert set(operation["responses"]) == wanted
    for status, response in operation["responses"].items():
        headers = resolve(response)["headers"]
        assert {"X-Request-ID", "Date"} <= set(headers)
        assert ("Retry-After" in headers) == (status in ("429", "503"))
        assert ("Allow" in headers) == (status == "405")


def changes_files(method: str, path: str) -> bool:
    """Whether an operation on files writes: those that only look may be POST, too."""
    return method != "GET" and not path.endswith(("/list", "/search"))
