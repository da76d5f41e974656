"""First light: a command runs, streams, and ends with its true outcome."""

from __future__ import annotations

from tests.support.live import Daemon, text


def test_a_command_streams_its_output_and_ends_with_its_exit_code(live: Daemon) -> None:
    events = live.run("echo out; echo err >&2; exit 3")
    assert [e["type"] for e in events if e["type"] not in ("stdout", "stderr")] == ["init", "error"]
    assert (text(events), text(events, "stderr")) == ("out\n", "err\n")
    assert events[-1]["error"]["evalue"] == "3"
