"""What a command wrote, as the SDK hands it over: nothing lost, nothing changed."""

from __future__ import annotations

import hashlib
import random
import re
import string
from pathlib import Path

import pytest
from opensandbox.models.execd import OutputMessage

from tests.support.live import daemon
from tests.support.sdk import KINDS, LineEndings, Sdk, Target, connected

EVENT_BYTES = 32 * 1024
CONTROLS = "".join(map(chr, [*range(1, 10), 11, 12, *range(14, 32), 127, 0x80, 0x85, 0x9F]))
SHAPES = {
    "one-line": "a\n",
    "many-lines": "a\nb\nc\n",
    "empty-lines": "a\n\nb\n\n\nc\n",
    "only-empty-lines": "\n\n\n",
    "no-final-newline": "a\nb",
    "no-newline-at-all": "a",
    "crlf": "a\r\nb\r\n\r\nc\r\n",
    "cr": "10%\r20%\r100%\n",
    "cr-at-the-end": "spin\r",
    "blanks": "  a  \n\t\n b\t\n",
    "quotes": "\"'\\`$%&<>{}[]\\n\\u0041\n",
    "looks-like-events": 'data: {"type":"error"}\n\nevent: x\nid: 7\n: y\n{"type":"execution_complete"}\n',
    "unicode": "é ñ ß 漢字 العربية עברית\n",
    "four-bytes": "🌍👩\u200d🚀𝔘𝕟𝕚\U0010ffff\n",
    "line-separators": "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei\n",
    "controls": CONTROLS + "\n",
    "noncharacters": "\ufeff\ufffe\uffff\ufffd\n",
}


def lines(text: str) -> list[str]:
    """What `strip` mode shows of `text`: its lines without their ends, an empty one as a newline."""
    found = re.split(r"\r\n|\n|\r", text)
    return [line or "\n" for line in (found if found[-1] else found[:-1])]


def normalized(text: str) -> str:
    """What `Execution.text` is to be: line ends as newlines, none at the end."""
    return re.sub(r"\r\n|\r", "\n", text).rstrip("\n")


def assert_shown(messages: list[OutputMessage], text: str, line_endings: LineEndings) -> None:
    texts = [message.text for message in messages]
    if line_endings == "keep":
        assert "".join(texts) == text
        assert all(shown.endswith(("\n", "\r")) for shown in texts[:-1])
    else:
        assert texts == lines(text)


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_text_of_any_shape_arrives_whole(sdk: Sdk, text: str) -> None:
    execution = sdk.run(["printf", "%s", text])
    assert execution.exit_code == 0
    assert_shown(execution.logs.stdout, text, sdk.line_endings)
    assert execution.logs.stderr == []
    if sdk.line_endings == "keep" or "\n" not in lines(text):
        assert execution.text == normalized(text)  # the SDK joins stripped lines: empty ones are lost to it


def test_blank_lines_are_newlines_of_their_own_in_strip_mode(sdk: Sdk) -> None:
    texts = [message.text for message in sdk.run(r"printf 'a\n\nb\n\n\nc\n'").logs.stdout]
    if sdk.line_endings == "strip":
        assert texts == ["a", "\n", "b", "\n", "\n", "c"]
    else:  # bash writes line by line; what is there at once comes as one text
        assert "".join(texts) == "a\n\nb\n\n\nc\n"


def test_stderr_is_kept_apart_from_stdout(sdk: Sdk) -> None:
    execution = sdk.run("echo out; echo err >&2; echo more out; printf tail >&2")
    assert_shown(execution.logs.stdout, "out\nmore out\n", sdk.line_endings)
    assert "".join(m.text for m in execution.logs.stderr).replace("\n", "") == "errtail"
    assert all(message.is_error for message in execution.logs.stderr)
    assert not any(message.is_error for message in execution.logs.stdout)


def test_bytes_that_are_no_text_become_replacement_characters(sdk: Sdk) -> None:
    execution = sdk.run(r"printf 'a\377b\300\200c\n'")
    assert execution.exit_code == 0
    assert execution.text == "a\ufffdb\ufffd\ufffdc"


def test_a_character_written_in_two_halves_arrives_whole(sdk: Sdk) -> None:
    execution = sdk.run(r"printf '\360\237'; sleep 0.3; printf '\214\215\n'")
    assert execution.text == "🌍"


def test_a_line_of_200_kb_is_complete(sdk: Sdk) -> None:
    execution = sdk.run("head -c 200000 /dev/zero | tr '\\0' x; echo; echo after")
    texts = [message.text for message in execution.logs.stdout]
    end = "\n" if sdk.line_endings == "keep" else ""
    assert "".join(texts) == "x" * 200_000 + end + "after" + end
    assert all(len(text.encode()) <= EVENT_BYTES for text in texts)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_end_of_a_long_line_is_no_line_of_its_own_when_it_comes_late(sdk: Sdk, end: str) -> None:
    script = "printf '%040000d' 0; sleep 0.1; printf '%b' \"$END\"; sleep 0.1; printf 'x\\n\\nafter'"
    execution = sdk.run(script, envs={"END": end})
    texts = [message.text for message in execution.logs.stdout]
    if sdk.line_endings == "keep":
        assert "".join(texts) == "0" * 40_000 + end + "x\n\nafter"
    else:
        assert "".join(texts[:-3]) == "0" * 40_000
        assert texts[-3:] == ["x", "\n", "after"]


@pytest.mark.parametrize("line_endings", ["keep", "strip"])
def test_a_line_within_the_limit_of_an_event_is_one_text(line_endings: LineEndings) -> None:
    # The SDK takes two texts for two lines unless the first ends one, so a split line has newlines in it.
    line = "".join(random.Random(5).choices(string.ascii_letters, k=900_000))
    with daemon("--event-text", "1MiB", "--line-endings", line_endings) as running:
        path = running.state / "line"
        path.write_text(line)
        for kind in KINDS:
            with connected(kind, Target(running, line_endings)) as sdk:
                assert sdk.run(f"cat {path}; echo").text == line


@pytest.fixture(scope="module")
def five_megabytes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = random.Random(7)
    row = string.printable[:95] + "äß漢🌍"
    rows = ["".join(source.choices(row, k=2000)) + "\n" for _ in range(2500)]
    path = tmp_path_factory.mktemp("output") / "text"
    path.write_text("".join(rows))
    return path


def test_five_megabytes_arrive_complete_and_in_order(sdk: Sdk, five_megabytes: Path) -> None:
    execution = sdk.run(f"cat {five_megabytes}")
    text = five_megabytes.read_text()
    assert execution.exit_code == 0
    shown = "".join([message.text for message in execution.logs.stdout])
    assert digest(shown) == digest(text if sdk.line_endings == "keep" else text.replace("\n", ""))
    assert digest(execution.text) == digest(text.rstrip("\n"))


def digest(text: str) -> str:
    """For a failure that can be read."""
    return f"{len(text)} {hashlib.sha256(text.encode()).hexdigest()}"
