"""Whole lines and whole characters out of chunks cut anywhere."""

from __future__ import annotations

import pytest

from execd.services.lines import LineAssembler, incomplete_tail, text_cut


@pytest.mark.parametrize(
    ("data", "tail"),
    [
        pytest.param(b"", 0, id="empty"),
        pytest.param(b"abc", 0, id="ascii"),
        pytest.param("é".encode(), 0, id="complete"),
        pytest.param("é".encode()[:1], 1, id="one-of-two"),
        pytest.param("€".encode()[:2], 2, id="two-of-three"),
        pytest.param("😀".encode()[:3], 3, id="three-of-four"),
        pytest.param("a😀".encode() + b"\x98", 0, id="a-follower-too-many"),
        pytest.param(b"\x80\x80\x80", 0, id="followers-without-lead"),
        pytest.param(b"\xff", 0, id="never-a-lead"),
        pytest.param(b"\xe0\x80", 0, id="overlong"),
        pytest.param(b"\xed\xa0", 0, id="surrogate"),
        pytest.param(b"\xf4\x90", 0, id="beyond-the-last-character"),
    ],
)
def test_the_start_of_a_character_is_told_from_bytes_that_never_become_one(data: bytes, tail: int) -> None:
    assert incomplete_tail(data) == tail


def test_an_unfinished_line_waits_for_its_end() -> None:
    lines = LineAssembler(100)
    assert lines.feed(b"a\nb") == b"a\n"
    assert lines.holding
    assert lines.feed(b"c") == b""
    assert lines.feed(b"d\n") == b"bcd\n"
    assert not lines.holding


def test_a_carriage_return_ends_a_line() -> None:
    lines = LineAssembler(100)
    assert lines.feed(b"10%\r20%\r30") == b"10%\r20%\r"
    assert lines.feed(b"%\n\r") == b"30%\n\r"


def test_a_line_of_the_limit_is_passed_on_without_a_part_of_a_character() -> None:
    lines = LineAssembler(8)
    assert lines.feed(b"x" * 7) == b""
    assert lines.feed("€".encode()[:2]) == b"x" * 7
    assert lines.holding
    assert lines.feed("€".encode()[2:] + b"\n") == "€\n".encode()


def test_less_than_the_limit_is_held_between_two_calls() -> None:
    lines = LineAssembler(64)
    passed = b"".join(lines.feed(b"x" * 50) for _ in range(100))
    assert 5000 - len(passed) < 64


def test_a_flush_on_silence_keeps_the_start_of_a_character() -> None:
    lines = LineAssembler(100)
    lines.feed(b"name: " + "€".encode()[:1])
    assert lines.flush(final=False) == b"name: "
    assert lines.flush(final=False) == b""
    assert lines.holding
    assert lines.flush(final=True) == "€".encode()[:1]
    assert not lines.holding


@pytest.mark.parametrize(
    ("data", "limit", "cut"),
    [
        pytest.param(b"one\ntwo\nthree", 10, 8, id="after-the-last-line-that-fits"),
        pytest.param(b"one\ntwo\n", 4, 4, id="a-line-of-the-limit"),
        pytest.param(b"10%\r20%\r30%\r", 10, 8, id="progress-bars"),
        pytest.param(b"x" * 20, 10, 10, id="a-line-longer-than-the-limit"),
        pytest.param(b"xx" + "€".encode() * 5, 10, 8, id="not-inside-a-character"),
        pytest.param(b"\xf0\x9f\x98\x80", 2, 2, id="no-room-for-one-character"),
    ],
)
def test_a_cut_is_after_a_line_if_it_can_be(data: bytes, limit: int, cut: int) -> None:
    assert text_cut(data, limit) == cut
