"""Bytes to text: characters are not torn, nothing aborts, raw bytes stay."""

from __future__ import annotations

import json

import pytest

from tests.support.following import first, following
from tests.support.live import Daemon, text

HALF = "printf '\\360\\237'"
OTHER_HALF = "printf '\\230\\200\\n'"


def test_a_character_that_comes_in_two_writes_is_one(live: Daemon, strip: Daemon) -> None:
    for own, end in ((live, "\n"), (strip, "")):
        assert text(own.run(f"{HALF}; sleep .4; {OTHER_HALF}")) == "😀" + end
        # between the halves the line was shown as far as it went
        assert text(own.run(f"printf 'x'; {HALF}; sleep .4; {OTHER_HALF}")) == "x😀" + end


def test_half_a_character_does_not_hold_back_what_is_before_it(live: Daemon) -> None:
    with following(live, f"printf 'before '; {HALF}; sleep 300") as events:
        command = first(events, "init")["text"]
        assert first(events, "stdout")["text"] == "before "
        live.client.delete("/command", params={"id": command})
        assert first(events, "stdout")["text"] == "\N{REPLACEMENT CHARACTER}"
        assert first(events, "error")["outcome"]["kind"] == "interrupted"
    assert live.logs(command).startswith(b"before ")


def test_the_two_streams_do_not_share_a_decoder(live: Daemon) -> None:
    events = live.run(f"{HALF}; {HALF} >&2; sleep .1; {OTHER_HALF}; {OTHER_HALF} >&2")
    assert (text(events), text(events, "stderr")) == ("😀\n", "😀\n")


def test_a_megabyte_of_wide_characters_arrives_whole(live: Daemon, strip: Daemon) -> None:
    program = "import sys; sys.stdout.buffer.write(('漢字かな😀é' * 60000).encode())"
    for own in (live, strip):
        assert text(own.run(argv=["python3", "-c", program])) == "漢字かな😀é" * 60000


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\xff\xfeok\n", "\ufffd\ufffdok\n"),
        (b"a\xc0\xafb\n", "a\ufffd\ufffdb\n"),
        (b"\xed\xa0\x80\n", "\ufffd\ufffd\ufffd\n"),
        (b"\xf0\x9f\x98\n", "\ufffd\n"),
        (b"end\xe4\xbd", "end\ufffd"),
        (b"a\0b\x1b[31m\x7f\n", "a\0b\x1b[31m\x7f\n"),
        ("\u2028\u0085\x0b\x1c\n".encode(), "\u2028\u0085\x0b\x1c\n"),
        (b'"\\/\n', '"\\/\n'),
        ("\ufeffbom\n".encode(), "\ufeffbom\n"),
    ],
)
def test_any_bytes_become_valid_json_and_stay_as_they_are_in_the_log(
    live: Daemon, raw: bytes, shown: str
) -> None:
    octal = "".join(f"\\{byte:03o}" for byte in raw)
    answer = live.client.post(
        "/command", json={"command": f"printf '{octal}'"}, headers={"Accept": "application/x-ndjson"}
    )
    assert answer.content.isascii()
    events = [json.loads(line) for line in answer.content.split(b"\n") if line]
    assert text(events) == shown
    assert events[-1]["exit_code"] == 0
    assert live.logs(events[0]["text"]) == raw
