"""Framings, and events byte for byte."""

from __future__ import annotations

import json

import pytest

from execd.api import encoders, framing
from execd.api.encoders import KeepEncoder, StripEncoder
from execd.api.framing import Framing, ascii_json
from execd.services.blocks import STDERR, STDOUT, Piece
from tests.properties.pipeline import events_of

SSE, NDJSON, BARE = Framing.SSE, Framing.NDJSON, Framing.BARE


def piece(data: bytes, *, stream: int = STDOUT, start: int = 0, block: int | None = None) -> Piece:
    return Piece(stream, data, start + len(data), start if block is None else block)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        ("", BARE),
        ("*/*", BARE),
        ("text/*", BARE),
        ("application/json", BARE),
        ("text/event-stream", SSE),
        ("Text/Event-Stream", SSE),
        ("text/event-stream; charset=utf-8", SSE),
        ("text/event-stream, */*", SSE),
        ("application/json, text/event-stream;q=0.1", SSE),
        ("application/x-ndjson", NDJSON),
        (" application/x-ndjson ;q=0.9 , text/event-stream;q=0.8", NDJSON),
        ("application/x-ndjson;q=0.8,text/event-stream;q=0.9", SSE),
        ("text/event-stream,application/x-ndjson", SSE),
        ("application/x-ndjson,text/event-stream", NDJSON),
        ("text/event-stream;q=0", BARE),
        ("text/event-stream;q=0,application/x-ndjson;q=0.001", NDJSON),
        ("text/event-stream;q=high", BARE),
        ("text/event-stream;q=nan", BARE),
        ("text/event-stream;q=-1", BARE),
        (",;,=;q", BARE),
        ("text/event-stream/x", BARE),
    ],
)
def test_accept_chooses_the_framing(accept: str, chosen: Framing) -> None:
    assert Framing.from_accept(accept) is chosen


def test_a_frame_is_what_its_readers_expect() -> None:
    assert SSE.frame(b"{}", 7) == b"id: 7\ndata: {}\n\n"
    assert SSE.frame(b"{}", None) == b"data: {}\n\n"
    assert NDJSON.frame(b"{}", 7) == b"{}\n"
    assert BARE.frame(b"{}", 7) == b"{}\n\n"


def test_json_is_compact_and_ascii_whatever_is_in_it() -> None:
    value = {"a": "é\u2028\u0085\x7f\0\n😀", "b": [1, None, True], "": 0.5}
    encoded = ascii_json(value)
    assert encoded.isascii()
    assert json.loads(encoded) == value
    assert b": " not in encoded
    assert b", " not in encoded
    assert ascii_json({"name": "a\udcffb"}) == b'{"name":"a\\ufffdb"}'


def test_an_event_that_is_no_output_has_its_fields_in_a_fixed_order() -> None:
    record = framing.event(NDJSON, "init", 1, text="id")
    assert list(json.loads(record)) == ["type", "text", "timestamp", "eid"]
    assert abs(json.loads(record)["timestamp"] - framing.milliseconds()) < 60_000
    assert "eid" not in json.loads(framing.event(BARE, "ping", None, text="pong"))


def test_what_is_there_at_once_is_one_event_up_to_the_limit() -> None:
    pieces = [
        piece(b"a\n"),
        piece(b"b\n", start=2),
        piece(b"c\n", start=4),
        piece(b"d\n", stream=STDERR, start=6),
    ]
    events = events_of(KeepEncoder(NDJSON, 4).encode(pieces), NDJSON)
    assert [(e.stream, e.text, e.eid) for e in events] == [
        (STDOUT, "a\nb\n", 6),
        (STDOUT, "c\n", 8),
        (STDERR, "d\n", 10),
    ]


def test_a_piece_is_cut_after_a_line_if_it_can_be() -> None:
    events = events_of(KeepEncoder(SSE, 8).encode([piece(b"one\ntwo\nthree\n" + b"x" * 20)]), SSE)
    assert [event.text for event in events] == ["one\ntwo\n", "three\n", "x" * 8, "x" * 8, "xxxx"]


def test_a_keep_event_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "milliseconds", lambda: 1234)
    body = KeepEncoder(SSE, 100).encode([piece('"\\%\t€\x7f'.encode() + b"\xff\n")])
    assert body == (
        b"id: 12\n"
        b'data: {"type":"stdout","text":"\\"\\\\%\\t\\u20ac\\u007f\\ufffd\\n","timestamp":1234,"eid":12}\n\n'
    )


def test_strip_events_byte_for_byte(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders, "milliseconds", lambda: 1234)
    pieces = [piece(b'a%"\n\r\nb\rc\n', stream=STDERR, start=100)]
    lines = [b'a%%\\"', b"\\n", b"b", b"c"]
    expected = [
        b'{"type":"stderr","text":"%b","timestamp":1234,"eid":%d}' % (line.replace(b"%%", b"%"), 103 + number)
        for number, line in enumerate(lines)
    ]
    assert StripEncoder(NDJSON, 100).encode(pieces) == b"".join(line + b"\n" for line in expected)
    assert StripEncoder(BARE, 100).encode(pieces) == b"".join(line + b"\n\n" for line in expected)
    assert StripEncoder(SSE, 100).encode(pieces) == b"".join(
        b"id: %d\ndata: %b\n\n" % (103 + number, line) for number, line in enumerate(expected)
    )


@pytest.mark.parametrize(
    ("pieces", "texts"),
    [
        pytest.param([b"a\r", b"\nb\n"], ["a", "b"], id="crlf-over-two-reads"),
        pytest.param([b"a\r", b"\n", b"\nb"], ["a", "\n", "b"], id="crlf-then-an-empty-line"),
        pytest.param([b"a\r", b"\rb"], ["a", "\n", "b"], id="two-carriage-returns"),
        pytest.param([b"\n", b"\n"], ["\n", "\n"], id="empty-lines"),
        pytest.param([b"a", b"\n"], ["a"], id="a-late-line-end"),
        pytest.param([b"a", b"\r", b"\nb"], ["a", "b"], id="a-late-crlf-in-pieces"),
        pytest.param([b"a", b"\n\nb"], ["a", "\n", "b"], id="a-late-line-end-and-an-empty-line"),
    ],
)
def test_line_ends_over_several_pieces(pieces: list[bytes], texts: list[str]) -> None:
    encoder = StripEncoder(NDJSON, 100)
    body, start = b"", 0
    for data in pieces:
        body += encoder.encode([piece(data, start=start)])
        start += len(data)
    assert [event.text for event in events_of(body, NDJSON)] == texts


def test_the_line_ends_of_the_two_streams_do_not_mix() -> None:
    encoder = StripEncoder(NDJSON, 100)
    body = encoder.encode([piece(b"a\r"), piece(b"\nb\n", stream=STDERR, start=2), piece(b"\nc\n", start=5)])
    assert [(e.stream, e.text) for e in events_of(body, NDJSON)] == [
        (STDOUT, "a"),
        (STDERR, "\n"),
        (STDERR, "b"),
        (STDOUT, "c"),
    ]


def test_a_line_is_counted_in_its_block_however_much_of_it_is_read_at_a_time() -> None:
    in_two = StripEncoder(NDJSON, 100)
    body = in_two.encode([piece(b"a\nb\n", start=50)]) + in_two.encode([piece(b"c\n", start=54, block=50)])
    at_once = StripEncoder(NDJSON, 100).encode([piece(b"a\nb\nc\n", start=50)])
    assert events_of(body, NDJSON) == events_of(at_once, NDJSON)
    assert [event.eid for event in events_of(body, NDJSON)] == [53, 54, 55]


def test_the_encoder_follows_the_setting() -> None:
    assert isinstance(encoders.encoder(SSE, "keep", 100), KeepEncoder)
    assert isinstance(encoders.encoder(SSE, "strip", 100), StripEncoder)
