"""Any multipart body, in any chunks, gives the parts that are in it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from execd.services.multipart import HEAD_BYTES, Multipart, NotMultipart, Part
from tests.support.uploads import BOUNDARY, body, part

Found = list[tuple[str, bytes]]
DELIMITER = f"\r\n--{BOUNDARY}".encode()
NASTY = [
    b"\r",
    b"\n",
    b"\r\n",
    b"--",
    b"\r\n--",
    DELIMITER[:-1],
    DELIMITER + b"x",
    DELIMITER + b"-x",
    b"",
    b" ",
]
REAL = re.compile(re.escape(DELIMITER) + rb"(--|[ \t]*(\r|$))")
contents = (
    st.lists(st.one_of(st.sampled_from(NASTY), st.binary(max_size=40)))
    .map(b"".join)
    .filter(lambda data: not REAL.search(data))
)
names = st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1, max_size=20)


def parse(pieces: Iterable[bytes], boundary: str = BOUNDARY) -> Found:
    """The parts, and a failure if the parser says anything that makes no sense."""
    parser, found, inside = Multipart(boundary.encode()), [], False
    for piece in pieces:
        for event in parser.feed(piece):
            if isinstance(event, Part):
                assert not inside
                found.append((event.name, b""))
                inside = True
            elif isinstance(event, memoryview):
                assert inside
                assert len(event) > 0
                found[-1] = (found[-1][0], found[-1][1] + bytes(event))
            else:
                assert inside
                inside = False
    parser.close()
    assert not inside
    return found


def cut(data: bytes, at: Iterable[int]) -> list[bytes]:
    """The data in pieces, some of them empty."""
    places = [0, *sorted(place % (len(data) + 1) for place in at), len(data)]
    return [data[start:stop] for start, stop in itertools.pairwise(places)]


def quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


@given(
    st.lists(st.tuples(names, contents), max_size=4),
    st.lists(st.integers(0, 10_000), max_size=30),
    contents,
    contents,
)
@example([("file", DELIMITER[:-3])], [], b"", b"")
@example([("file", b"\r"), ("file", b"\r\n")], [1, 2, 3], b"hello", b"--")
def test_a_body_gives_its_parts_however_it_is_cut(
    parts: Found, cuts: list[int], before: bytes, after: bytes
) -> None:
    whole = before + b"\r\n" + body(*(part(quoted(name), data) for name, data in parts)) + after
    assert parse(cut(whole, cuts)) == parts


@given(contents, contents)
def test_a_body_gives_its_parts_byte_by_byte(one: bytes, two: bytes) -> None:
    whole = body(part("metadata", one), part("file", two))
    assert parse(whole[at : at + 1] for at in range(len(whole))) == [("metadata", one), ("file", two)]


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=5))
def test_garbage_is_refused_and_nothing_worse(data: bytes, cuts: list[int]) -> None:
    with pytest.raises(NotMultipart):
        parse(cut(data, cuts))


@given(contents, st.integers(1, 200))
def test_a_body_that_is_cut_short_is_never_complete(content: bytes, missing: int) -> None:
    whole = body(part("metadata", b"{}"), part("file", content)).removesuffix(b"\r\n")
    with pytest.raises(NotMultipart):
        parse([whole[: -min(missing, len(whole) - 1)]])


@pytest.mark.parametrize(
    ("disposition", "name"),
    [
        pytest.param('form-data; name="file"; filename="x"', "file", id="plain"),
        pytest.param("FORM-DATA;NAME=file", "file", id="capitals-without-quotes"),
        pytest.param(
            'form-data; filename="a; name=\\"other\\""; name="file"', "file", id="name-in-a-file-name"
        ),
        pytest.param("form-data; filename*=UTF-8''%e2%82%ac; name=file", "file", id="encoded-file-name"),
        pytest.param('form-data;\r\n name="file"', "file", id="folded"),
        pytest.param('form-data ; name = "file"', "file", id="spaces"),
        pytest.param('form-data; name="\xe2\x82\xac"', "€", id="utf-8"),
    ],
)
def test_a_parts_name_is_found(disposition: str, name: str) -> None:
    head = b"--b\r\nX-Other: y\r\nContent-Disposition: " + disposition.encode("latin-1")
    assert parse([head + b"\r\n\r\nx\r\n--b--"], "b") == [(name, b"x")]


@pytest.mark.parametrize(
    "head", [b"", b"X: y", b"Content-Disposition: attachment; name=file", b"form-data; name=a"]
)
def test_a_part_without_a_name_is_refused(head: bytes) -> None:
    with pytest.raises(NotMultipart, match="name"):
        parse([b"--b\r\n" + head + b"\r\n\r\nx\r\n--b--"], "b")


def test_white_space_after_a_boundary_is_no_content() -> None:
    head = b"--b \t \r\nContent-Disposition: form-data; name=a\r\n\r\n"
    assert parse([head + b"x\r\n--b\t--\r\n--b--  \r\n"], "b") == [("a", b"x\r\n--b\t--")]


def test_a_part_that_has_no_line_end_of_its_own_is_empty() -> None:
    head = b"--b\r\nContent-Disposition: form-data; name=a\r\n\r\n"
    assert parse([head + b"--b--"], "b") == [("a", b"")]


def test_headers_are_bounded_however_they_come() -> None:
    long = part("file", b"x", "X: " + "y" * (HEAD_BYTES - 200))
    assert parse([body(long)]) == [("file", b"x")]
    too_long = body(part("file", b"x", "X: " + "y" * HEAD_BYTES))
    for size in (1000, len(too_long)):
        with pytest.raises(NotMultipart, match=str(HEAD_BYTES)):
            parse(too_long[at : at + size] for at in range(0, len(too_long), size))


@pytest.mark.parametrize("coding", ["base64", "quoted-printable"])
def test_a_coding_of_mail_is_refused(coding: str) -> None:
    with pytest.raises(NotMultipart, match="Content-Transfer-Encoding"):
        parse([body(part("file", b"x", f"Content-Transfer-Encoding: {coding}"))])
    assert parse([body(part("file", b"x", "Content-Transfer-Encoding: Binary"))]) == [("file", b"x")]


def test_what_is_held_between_two_chunks_is_small() -> None:
    parser = Multipart(BOUNDARY.encode())
    list(parser.feed(part("file", b"")[:-2]))
    for _ in range(50):
        assert sum(len(e) for e in parser.feed(b"\r\n--execd" * 10_000) if isinstance(e, memoryview)) > 80_000
        assert len(parser._rest) <= len(DELIMITER)
