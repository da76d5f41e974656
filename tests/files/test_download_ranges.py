"""Ranges and conditions of downloads (RFC 9110 13 and 14)."""

from __future__ import annotations

import os
import re
from email.utils import formatdate
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.contract import assert_canonical_error, assert_documented
from tests.support.live import Daemon

TEN = b"0123456789"
WHOLE = None
BEYOND = (0, 0)
TABLE = {
    # header: begin and end of what is sent of ten bytes, WHOLE or BEYOND
    "bytes=0-0": (0, 1),
    "bytes=0-9": (0, 10),
    "bytes=0-": (0, 10),
    "bytes=5-": (5, 10),
    "bytes=9-9": (9, 10),
    "bytes=9-100": (9, 10),
    "bytes=2-4": (2, 5),
    "bytes=-1": (9, 10),
    "bytes=-5": (5, 10),
    "bytes=-10": (0, 10),
    "bytes=-11": (0, 10),
    "bytes=-99999999999999999999999999": (0, 10),
    "bytes=0-99999999999999999999999999": (0, 10),
    "bytes=00000000000000000000000001-2": (1, 3),
    "Bytes=1-2": (1, 3),
    "bytes= 1-2": (1, 3),
    "bytes=1-2,4-5": (1, 3),
    "bytes=8-9 , 0-1": (8, 10),
    "bytes=,,1-2,": (1, 3),
    "bytes=10-,3-4": (3, 5),
    "bytes=-0,3-4": (3, 5),
    "bytes=10-": BEYOND,
    "bytes=10-11,20-": BEYOND,
    "bytes=99999999999999999999999999-": BEYOND,
    "bytes=-0": BEYOND,
    "bytes=4-2": WHOLE,
    "bytes=1-2,4-3": WHOLE,
    "bytes=": WHOLE,
    "bytes=,": WHOLE,
    "bytes=-": WHOLE,
    "bytes=a-b": WHOLE,
    "bytes=1-2-3": WHOLE,
    "bytes=1 -2": WHOLE,
    "bytes=+1-2": WHOLE,
    "bytes=1.5-2": WHOLE,
    "bytes=\u0661-2": WHOLE,
    "bytes 1-2": WHOLE,
    "lines=1-2": WHOLE,
    "": WHOLE,
}


def _get(running: Daemon, path: Path, *headers: tuple[str, str]) -> httpx.Response:
    encoded = [(name.encode(), value.encode()) for name, value in headers]
    answer = running.client.get("/files/download", params={"path": str(path)}, headers=encoded)
    assert_documented("GET", "/files/download", answer)
    return answer


@pytest.fixture
def ten(tmp_path: Path) -> Path:
    path = tmp_path / "ten"
    path.write_bytes(TEN)
    return path


@pytest.mark.parametrize("header", TABLE)
def test_a_range_of_ten_bytes_is_what_the_rfc_says(live: Daemon, ten: Path, header: str) -> None:
    answer = _get(live, ten, ("Range", header))
    wanted = TABLE[header]
    if wanted is WHOLE:
        assert (answer.status_code, answer.content) == (200, TEN)
        assert "content-range" not in answer.headers
    elif wanted == BEYOND:
        assert_canonical_error(answer, "RANGE_NOT_SATISFIABLE")
        assert answer.headers["content-range"] == "bytes */10"
    else:
        start, stop = wanted
        assert (answer.status_code, answer.content) == (206, TEN[start:stop])
        assert answer.headers["content-range"] == f"bytes {start}-{stop - 1}/10"
        assert answer.headers["content-length"] == str(stop - start)


@pytest.mark.parametrize("header", ["bytes=0-0", "bytes=0-", "bytes=-5", "bytes=-0", "bytes=1-"])
def test_no_range_of_an_empty_file_can_be_satisfied(live: Daemon, tmp_path: Path, header: str) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    answer = _get(live, empty, ("Range", header))
    assert_canonical_error(answer, "RANGE_NOT_SATISFIABLE")
    assert answer.headers["content-range"] == "bytes */0"


def test_an_empty_file_is_an_empty_answer(live: Daemon, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    for header in ([], [("Range", "bytes=x")]):
        answer = _get(live, empty, *header)
        assert (answer.status_code, answer.content, answer.headers["content-length"]) == (200, b"", "0")
        assert answer.headers["accept-ranges"] == "bytes"


def test_two_range_headers_are_none_that_can_be_understood(live: Daemon, ten: Path) -> None:
    assert _get(live, ten, ("Range", "bytes=0-0"), ("Range", "bytes=1-1")).status_code == 200


def test_head_has_no_range(live: Daemon, ten: Path) -> None:
    answer = live.client.head("/files/download", params={"path": str(ten)}, headers={"Range": "bytes=99-"})
    assert (answer.status_code, answer.headers["content-length"]) == (200, "10")


def test_a_range_with_an_if_range_that_holds_is_sent_and_else_the_whole_file(live: Daemon, ten: Path) -> None:
    os.utime(ten, (1_000_000_000, 1_000_000_000))
    whole = _get(live, ten)
    tag, date = whole.headers["etag"], whole.headers["last-modified"]
    assert date == "Sun, 09 Sep 2001 01:46:40 GMT"
    for validator, holds in {
        tag: True,
        date: True,
        "Sunday, 09-Sep-01 01:46:40 GMT": True,
        f"W/{tag}": False,
        '"other"': False,
        tag.strip('"'): False,
        "Sun, 09 Sep 2001 01:46:41 GMT": False,
        "Sun, 09 Sep 2001 01:46:39 GMT": False,
        formatdate(usegmt=True): False,
        "Sun, 99 Sep 99999 01:46:40 GMT": False,
        "yesterday": False,
        "": False,
    }.items():
        answer = _get(live, ten, ("Range", "bytes=0-1"), ("If-Range", validator))
        assert answer.status_code == (206 if holds else 200), validator
    # A guard that does not hold guards also against a range that could not be satisfied.
    assert _get(live, ten, ("Range", "bytes=10-"), ("If-Range", '"other"')).status_code == 200
    assert _get(live, ten, ("If-Range", tag)).status_code == 200


def test_a_file_that_the_client_has_is_not_sent_again(live: Daemon, ten: Path) -> None:
    tag = _get(live, ten).headers["etag"]
    for known, sent in {
        tag: False,
        f"W/{tag}": False,
        f'"x", {tag}': False,
        f'"a,b" , W/"y",{tag},': False,
        "*": False,
        '"x"': True,
        tag.strip('"'): True,
        "": True,
    }.items():
        answer = _get(live, ten, ("If-None-Match", known), ("Range", "bytes=0-0"))
        assert answer.status_code == (206 if sent else 304), known
        assert answer.content == (TEN[:1] if sent else b"")
    assert _get(live, ten, ("If-None-Match", '"x"'), ("If-None-Match", tag)).status_code == 304
    head = live.client.head("/files/download", params={"path": str(ten)}, headers={"If-None-Match": tag})
    assert head.status_code == 304
    assert_documented("HEAD", "/files/download", head)


def test_a_tag_is_another_one_as_soon_as_the_content_may_be(live: Daemon, ten: Path) -> None:
    tags = [_get(live, ten).headers["etag"]]
    ten.write_bytes(TEN + b"x")
    tags.append(_get(live, ten).headers["etag"])
    os.utime(ten, ns=(0, 1))
    tags.append(_get(live, ten).headers["etag"])
    other = ten.with_name("other")
    other.write_bytes(TEN + b"y")
    os.utime(other, ns=(0, 1))
    other.rename(ten)
    tags.append(_get(live, ten).headers["etag"])
    assert len(set(tags)) == 4
    assert _get(live, ten).headers["etag"] == tags[-1]


def test_a_time_that_no_http_date_can_say_does_no_harm(live: Daemon, ten: Path) -> None:
    for seconds in (-(10**9), 0, 10**10):
        os.utime(ten, (seconds, seconds))
        answer = _get(live, ten)
        expected = answer.headers["date"] if seconds > 0 else "Thu, 01 Jan 1970 00:00:00 GMT"
        assert answer.headers["last-modified"] == expected


def _model(header: str, size: int) -> tuple[int, int] | None:
    """What RFC 9110 makes of a header, written another way: WHOLE, BEYOND or begin and end."""
    if not re.fullmatch(r"bytes=[ \t]*((\d+-\d*|-\d+)?[ \t]*,?[ \t]*)*", header, re.ASCII | re.IGNORECASE):
        return WHOLE
    parts = [part.strip(" \t") for part in header[6:].split(",") if part.strip(" \t")]
    positions = range(size)
    found = []
    for part in parts:
        first, _, last = part.partition("-")
        if not re.fullmatch(r"\d*-\d*", part, re.ASCII) or (first and last and int(first) > int(last)):
            return WHOLE
        if first:
            found.append([at for at in positions if int(first) <= at <= (int(last) if last else size)])
        else:
            found.append([at for at in positions if size - at <= int(last)])
    if not found:
        return WHOLE
    chosen = next((one for one in found if one), None)
    return (chosen[0], chosen[-1] + 1) if chosen else BEYOND


_NUMBER = st.one_of(st.just(""), st.integers(0, 12).map(str), st.integers(0, 10**30).map(str))
_SPEC = st.tuples(_NUMBER, _NUMBER).map("-".join).filter(lambda spec: spec != "-") | st.text(
    "0123-, ab", max_size=5
)
_HEADER = st.lists(_SPEC, max_size=4).map(lambda specs: "bytes=" + ",".join(specs)) | st.text(
    st.characters(min_codepoint=32, max_codepoint=126), max_size=12
)


@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    derandomize=True,
)
@given(header=_HEADER, size=st.integers(0, 12))
def test_any_range_of_any_file_is_what_the_model_says(
    live: Daemon, tmp_path: Path, header: str, size: int
) -> None:
    path = tmp_path / "file"
    content = bytes(range(65, 65 + size))
    path.write_bytes(content)
    header = header.strip(" ")  # as every parser of headers does
    answer = _get(live, path, ("Range", header))
    wanted = _model(header, size)
    if wanted is WHOLE:
        assert (answer.status_code, answer.content) == (200, content)
    elif wanted == BEYOND:
        assert (answer.status_code, answer.headers["content-range"]) == (416, f"bytes */{size}")
    else:
        assert (answer.status_code, answer.content) == (206, content[slice(*wanted)])
        assert answer.headers["content-range"] == f"bytes {wanted[0]}-{wanted[1] - 1}/{size}"
