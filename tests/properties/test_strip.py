"""`strip` mode: one event a line, against a splitter that looks at one byte at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from execd.api.encoders import StripEncoder
from execd.api.framing import Framing
from execd.services.blocks import STDOUT
from tests.properties import AWKWARD, bounded
from tests.properties.pipeline import Chunk, chunks, events_of, lines_of, output_of, sent

framings = st.sampled_from(Framing)
WIDE = 32 * 1024  # no line of these examples is that long


def shown(line: bytes) -> str:
    return line.decode("utf-8", "replace") or "\n"


@bounded(400)
@given(written=chunks(flushes=False), framing=framings)
def test_one_event_a_line(written: list[Chunk], framing: Framing) -> None:
    events = events_of(sent(written, framing, "strip", WIDE), framing)
    for stream in (0, 1):
        texts = [event.text for event in events if event.stream == stream]
        assert texts == [shown(line) for line in lines_of(output_of(written, stream))]


@bounded(400)
@given(written=chunks(flushes=False), framing=framings, limit=st.integers(8, 60))
def test_a_long_line_is_split_and_no_line_appears_that_was_not_there(
    written: list[Chunk], framing: Framing, limit: int
) -> None:
    events = events_of(sent(written, framing, "strip", limit), framing)
    for stream in (0, 1):
        texts = [event.text for event in events if event.stream == stream]
        for line in lines_of(output_of(written, stream)):
            if len(line) < limit - 3:
                assert texts.pop(0) == shown(line)
                continue
            text = ""
            while len(text) < len(shown(line)):
                assert 0 < len(texts[0].replace("\ufffd", "?").encode()) <= limit
                text += texts.pop(0)
            assert text == shown(line)
        assert texts == []


@bounded(300)
@given(written=chunks(flushes=False), limit=st.sampled_from((16, 64, WIDE)))
def test_every_reader_gets_the_same_events_under_the_same_eids(written: list[Chunk], limit: int) -> None:
    live = events_of(sent(written, Framing.NDJSON, "strip", limit), Framing.NDJSON)
    late = events_of(sent(written, Framing.NDJSON, "strip", limit, lagging=True), Framing.NDJSON)
    assert live == late


lines = st.lists(
    st.one_of(
        st.text(st.characters(max_codepoint=126), max_size=30).map(lambda text: text.encode()),
        st.binary(min_size=20, max_size=150).map(lambda line: bytes(byte % 127 for byte in line)),
        st.sampled_from([part for part in AWKWARD if part.isascii() and b"\x7f" not in part]),
    ).map(lambda line: line.replace(b"\n", b" ")),
    min_size=1,
    max_size=30,
)


@bounded(300)
@given(
    data=lines.map(b"\n".join),
    framing=framings,
    block=st.sampled_from((0, 1, 9_980, 9_997, 10_000, 19_990, 123_456_789_990, 2**40)),
    before=st.integers(0, 5),
)
def test_the_fast_path_and_the_slow_path_say_the_same(
    data: bytes, framing: Framing, block: int, before: int
) -> None:
    def made() -> StripEncoder:
        encoder = StripEncoder(framing, WIDE)
        encoder._block, encoder._lines = block, before
        return encoder

    fast, slow = made(), made()
    assert fast._batch(STDOUT, data + b"\n", 1234) == slow._slowly(STDOUT, data, 1234)
    assert fast._lines == slow._lines


def test_ten_thousand_empty_lines_are_ten_thousand_events() -> None:
    written = [Chunk(0, b"\n" * 25_000 + b"\r\n" * 3)]
    events = events_of(sent(written, Framing.NDJSON, "strip", WIDE), Framing.NDJSON)
    assert [event.text for event in events] == ["\n"] * 25_003


def test_a_line_end_that_comes_after_the_limit_was_reached_is_no_empty_line() -> None:
    for end in (b"\n", b"\r", b"\r\n"):
        written = [Chunk(0, b"x" * 64), *(Chunk(0, bytes([byte]), take=1) for byte in end), Chunk(0, b"y")]
        events = events_of(sent(written, Framing.BARE, "strip", 64), Framing.BARE)
        assert [event.text for event in events] == ["x" * 64, "y"]
