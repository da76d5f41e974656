"""A wrong body or query: the message names the field, the value and what is wrong."""

from __future__ import annotations

import asyncio
import re
import resource
from typing import Any

import pytest
from starlette.requests import Request

from execd.api import body, query
from execd.api.body import parse_body
from execd.errors import InvalidBody, InvalidQuery, MissingQuery, RequestTimeout
from execd.models.commands import RunCommandRequest


def request(*parts: bytes, query: str = "", last: bool = True) -> Request[Any]:
    """A request whose body comes in parts; without `last` the rest never comes."""
    messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
    if last:
        messages.append({"type": "http.request", "body": b""})

    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        return await asyncio.Event().wait()

    return Request({"type": "http", "query_string": query.encode(), "headers": []}, receive)


def parsed(*parts: bytes) -> RunCommandRequest:
    return asyncio.run(parse_body(request(*parts), RunCommandRequest))


@pytest.mark.parametrize(
    ("content", "field", "message"),
    [
        (b"", None, "the body is no JSON: EOF while parsing a value"),
        (b"{", None, "the body is no JSON: EOF while parsing an object"),
        (b"\xff", None, "the body is no JSON: "),
        (b'{"command":"\xff"}', None, "the body is no JSON: "),
        (b'{"command":"\\ud800"}', None, "the body is no JSON: "),
        (b"[" * 100_000, None, "the body is no JSON: recursion limit"),
        (b"[]", None, "Input should be an object"),
        (b"null", None, "Input should be an object"),
        (b"{}", "command", "exactly one of command and argv is needed"),
        (b'{"command":"a","argv":["a"]}', "command", "exactly one of command and argv is needed"),
        (b'{"command":"a","nope":1}', "nope", "nope: there is no such field"),
        (b'{"command":1}', "command", "command: Input should be a valid string, it is 1"),
        (b'{"command":""}', "command", "command: String should have at least 1 character, it is ''"),
        (b'{"command":"a\\u0000b"}', "command", r"command: holds a NUL character, it is 'a\x00b'"),
        (b'{"argv":[]}', "argv", "argv: List should have at least 1 item"),
        (b'{"argv":["a",2]}', "argv[1]", "argv[1]: Input should be a valid string, it is 2"),
        (b'{"argv":[""]}', "argv[0]", "argv[0] is empty"),
        (
            b'{"command":"a","timeout":-1}',
            "timeout",
            "timeout: Input should be greater than or equal to 0, it is -1",
        ),
        (b'{"command":"a","timeout":1.5}', "timeout", "timeout: Input should be a valid integer, it is 1.5"),
        (b'{"command":"a","timeout":"1"}', "timeout", "timeout: Input should be a valid integer, it is '1'"),
        (b'{"command":"a","timeout":1e300}', "timeout", "timeout: "),
        (
            b'{"command":"a","background":1}',
            "background",
            "background: Input should be a valid boolean, it is 1",
        ),
        (b'{"command":"a","gid":1}', "gid", "gid needs uid"),
        (b'{"command":"a","uid":4294967295}', "uid", "uid: Input should be less than or equal to 4294967294"),
        (b'{"command":"a","envs":{"A":1}}', "envs.A", "envs.A: Input should be a valid string, it is 1"),
        (b'{"command":"a","envs":{"A=":"x"}}', "envs.A=", "envs.A=: is no name for a variable"),
        (b'{"command":"a","envs":{"A":"\\u0000"}}', "envs.A", "envs.A: holds a NUL character"),
        (
            b'{"command":"a","cwd":7,"uid":"x"}',
            "cwd",
            "cwd: Input should be a valid string, it is 7 (and 1 more)",
        ),
    ],
)
def test_the_field_is_named(content: bytes, field: str | None, message: str) -> None:
    with pytest.raises(InvalidBody) as refused:
        parsed(content)
    assert message in refused.value.message
    assert refused.value.details == ({"field": field} if field else None)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b'{"argv":["true"' + b",1" * 1_000_000 + b"]}", "argv: 1000001 items", id="argv"),
        pytest.param(
            b'{"envs":{' + b",".join(b'"A%d":1' % n for n in range(20_000)) + b"}}",
            "envs: 20000 items",
            id="envs",
        ),
        pytest.param(
            b"{" + b",".join(b'"f%d":1' % n for n in range(20_000)) + b"}", "20000 items", id="fields"
        ),
        pytest.param(
            b'{"command":"a","x":[[' + b",".join([b"[]"] * 200_000) + b"]]}", "x[0]: 200000 items", id="deep"
        ),
    ],
)
def test_a_body_of_very_many_items_is_refused_before_each_is_looked_at(content: bytes, message: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InvalidBody, match=re.escape(message)):
        parsed(content)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200 * 1024  # KiB


def test_of_many_wrong_arguments_the_first_is_named() -> None:
    with pytest.raises(InvalidBody, match=r"argv\[1\]: Input should be a valid string") as refused:
        parsed(b'{"argv":["true"' + b",1" * 100_000 + b"]}")
    assert "more" not in refused.value.message


def test_a_long_value_or_name_is_shown_in_part() -> None:
    with pytest.raises(InvalidBody) as refused:
        parsed(b'{"command":["%b"]}' % (b"x" * 100_000))
    assert len(refused.value.message) < 200
    with pytest.raises(InvalidBody) as refused:
        parsed(b'{"command":"a","%b":1}' % (b"x" * 100_000))
    assert len(refused.value.message) < 300


def test_a_body_is_put_together_from_its_parts_and_null_means_absent() -> None:
    whole = parsed(b'{"comma', b"", b'nd":"a b","cwd":null,"timeout":15', b'00.0,"envs":{"A":"1"}}')
    assert (whole.command, whole.cwd, whole.envs) == ("a b", None, {"A": "1"})
    assert whole.timeout_seconds == 1.5
    assert parsed(b'{"argv":["a"],"timeout":0}').timeout_seconds is None


def test_a_body_that_does_not_arrive_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body, "BODY_SECONDS", 0.05)
    with pytest.raises(RequestTimeout, match=r"within 0\.05 s"):
        asyncio.run(parse_body(request(b"{", last=False), RunCommandRequest))


def test_a_query_parameter_that_is_needed_is_named() -> None:
    assert query.required(request(query="id=a+b&x=1"), "id") == "a b"
    for text in ("", "id=", "ID=x"):
        with pytest.raises(MissingQuery, match="query parameter id is needed") as refused:
            query.required(request(query=text), "id")
        assert refused.value.details == {"field": "id"}


def test_an_offset_is_a_whole_number_that_fits_a_file() -> None:
    for text, offset in (
        ("", None),
        ("cursor=", None),
        ("cursor=0012", 12),
        (f"cursor={2**63 - 1}", 2**63 - 1),
    ):
        assert query.whole_number(request(query=text), "cursor", 0, 2**63 - 1) == offset
    for text in ("-1", "+1", "1.5", "x", "1e3", str(2**63), "9" * 5000, "%D9%A3", "%C2%B2", "0x1"):
        with pytest.raises(InvalidQuery, match="query parameter cursor is ") as refused:
            query.whole_number(request(query=f"cursor={text}"), "cursor", 0, 2**63 - 1)
        assert len(refused.value.message) < 200
