"""Downloads of some lines of a file."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from execd.posix import lines as lines_module
from execd.posix.lines import LineSearch, nth_newline
from tests.support.contract import assert_documented
from tests.support.live import Daemon, daemon

MIB = 1 << 20
FIVE = b"one\ntwo\r\n\nfour\nfive"


def _lines(
    running: Daemon, path: Path, offset: int | str | None = None, limit: int | str | None = None
) -> httpx.Response:
    query = {"path": str(path), "offset": offset, "limit": limit}
    answer = running.client.get(
        "/files/download", params={name: value for name, value in query.items() if value is not None}
    )
    assert_documented("GET", "/files/download", answer)
    assert answer.status_code == 200
    assert answer.headers["content-length"] == str(len(answer.content))
    return answer


def _model(data: bytes, offset: int, limit: int | None) -> bytes:
    """The lines, found by splitting all of the file."""
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return b"\n".join(lines[offset - 1 :][:limit])


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [
        (1, 1, b"one"),
        (2, 1, b"two\r"),
        (3, 1, b""),
        (3, 2, b"\nfour"),
        (4, 2, b"four\nfive"),
        (4, None, b"four\nfive"),
        (None, 2, b"one\ntwo\r"),
        (5, 100, b"five"),
        (6, 1, b""),
        (1000, None, b""),
        (1, 2**63 - 1, FIVE),
        (2**63 - 1, 2**63 - 1, b""),
        ("", 1, b"one"),
        (5, "", b"five"),
    ],
)
def test_lines_are_counted_from_one_and_joined_without_a_last_end(
    live: Daemon, tmp_path: Path, offset: int | None, limit: int | None, expected: bytes
) -> None:
    path = tmp_path / "five"
    for end in (b"", b"\n"):
        path.write_bytes(FIVE + end)
        answer = _lines(live, path, offset, limit)
        assert answer.content == expected
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert "etag" not in answer.headers


def test_an_empty_file_has_no_lines_and_one_of_line_ends_has_empty_ones(live: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    assert _lines(live, path, 1).content == b""
    path.write_bytes(b"\n\n\n")
    assert _lines(live, path, 1).content == b"\n\n"
    assert _lines(live, path, 2, 1).content == b""


def test_bytes_that_are_no_text_are_passed_on(live: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a\n\xff\x00\xe2\x80\xa8\x85\x0b\x0c\rb\nc")
    assert _lines(live, path, 2, 1).content == b"\xff\x00\xe2\x80\xa8\x85\x0b\x0c\rb"


def test_head_says_how_long_the_lines_are(live: Daemon, tmp_path: Path) -> None:
    path = tmp_path / "file"
    for content in (b"1\n22\n333", b"1\n" + b"2" * 3 * MIB + b"\n3"):
        path.write_bytes(content)
        head = live.client.head("/files/download", params={"path": str(path), "offset": 2, "limit": 1})
        assert head.headers["content-length"] == str(len(content.split(b"\n")[1]))


def test_lines_of_any_length_and_number_need_no_memory(tmp_path: Path) -> None:
    long, many = tmp_path / "long", tmp_path / "many"
    long.write_bytes(b"first\n" + b"x" * 50_000_000 + b"\nlast\n")
    many.write_bytes(b"".join(b"line %d\r\n" % number for number in range(1_000_000)))
    with daemon() as running:
        _lines(running, many, 10, 10)
        before = running.rss_bytes()
        assert _lines(running, long, 2, 1).content == b"x" * 50_000_000
        assert _lines(running, long, 3).content == b"last"
        assert _lines(running, long).content == long.read_bytes()
        assert _lines(running, many, 999_999, 5).content == b"line 999998\r\nline 999999\r"
        assert _lines(running, many, 500_000, 2).content == b"line 499999\r\nline 500000\r"
        assert _lines(running, many, 2).content == many.read_bytes()[8:-1]
        assert _lines(running, many, 1_000_001).content == b""
        assert running.rss_bytes() - before < 16 * MIB


@pytest.mark.parametrize("size", [MIB - 1, MIB, MIB + 1])
def test_a_small_and_a_large_file_have_the_same_lines(live: Daemon, tmp_path: Path, size: int) -> None:
    data = (b"0123456789" * 7 + b"\n") * (size // 71 + 1)
    path = tmp_path / "file"
    path.write_bytes(data[:size])
    for offset, limit in ((1, 3), (14_000, 5), (14_700, None), (14_770, 1), (20_000, 1)):
        assert _lines(live, path, offset, limit).content == _model(data[:size], offset, limit)


@settings(max_examples=500, deadline=None, derandomize=True)
@given(
    data=st.lists(st.sampled_from([b"\n", b"\n\n", b"\r\n", b"a", b"bcd", b"e" * 100]), max_size=40).map(
        b"".join
    ),
    offset=st.integers(1, 60),
    limit=st.none() | st.integers(1, 60),
    piece=st.integers(1, 300),
    known=st.booleans(),
)
def test_any_lines_of_any_file_read_in_any_pieces_are_those_of_the_model(
    data: bytes, offset: int, limit: int | None, piece: int, known: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "_PIECE", piece)
        patch.setattr(lines_module, "_TURN", 3)
        search = LineSearch(offset, limit, len(data) if known else 0)
        while not search.advance(lambda start, stop: data[start:stop]):
            pass
    assert data[search.start : search.stop] == _model(data, offset, limit)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    data=st.lists(st.sampled_from([b"\n", b"a", b"b" * 70]), max_size=200).map(b"".join),
    nth=st.integers(1, 60),
    start=st.integers(0, 100),
)
def test_the_nth_newline_is_where_counting_one_by_one_finds_it(data: bytes, nth: int, start: int) -> None:
    places = [at for at in range(start, len(data)) if data[at : at + 1] == b"\n"]
    assume(len(places) >= nth)
    assert nth_newline(data, nth, start) == places[nth - 1]
