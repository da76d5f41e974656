"""Output on its way to the client: at once, complete, in order, kept apart, alive in silence."""

from __future__ import annotations

import time

import httpx

from tests.support.following import command_id, connection, first, following, parallel, read_until, terminals
from tests.support.live import Daemon, daemon, text, wait_until


def test_output_arrives_while_the_command_runs(live: Daemon) -> None:
    # The command waits for a file that is made only when its first line has arrived.
    with following(
        live, "f=$(mktemp -u); echo $f; until [ -e $f ]; do sleep 0.02; done; rm $f; echo done"
    ) as events:
        name = first(events, "stdout")["text"].strip()
        live.run(f"touch {name}")
        assert first(events, "stdout")["text"] == "done\n"
        assert next(events)["type"] == "execution_complete"


def test_the_first_event_comes_before_any_output(live: Daemon) -> None:
    with following(live, "sleep 300", timeout=3000) as events:
        event = next(events)
        assert event["type"] == "init"
        assert live.status(event["text"])["running"] is True
        live.client.delete("/command", params={"id": event["text"]})


def test_headers_keep_intermediaries_from_holding_events_back(live: Daemon) -> None:
    for background in (False, True):
        answer = live.client.post("/command", json={"command": "true", "background": background})
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["content-type"] == "text/event-stream"


def test_progress_bars_are_passed_on_as_they_are_drawn(live: Daemon, strip: Daemon) -> None:
    for own, drawn in ((live, ["1\r", "2\r", "3\r"]), (strip, ["1", "2", "3"])):
        events = own.run('for i in 1 2 3; do printf "$i\\r"; sleep .3; done')
        output = [event for event in events if event["type"] == "stdout"]
        assert [event["text"] for event in output] == drawn
        assert output[1]["timestamp"] - output[0]["timestamp"] > 100


def test_an_unfinished_line_is_shown_before_it_is_finished(live: Daemon) -> None:
    with following(live, "printf 'Password: '; sleep 300") as events:
        command = first(events, "init")["text"]
        assert first(events, "stdout")["text"] == "Password: "
        live.client.delete("/command", params={"id": command})


def test_no_line_end_is_lost_or_made_up(live: Daemon, strip: Daemon) -> None:
    for command, kept, stripped in (
        ("printf 'a\\nb'", "a\nb", ["a", "b"]),
        ("printf 'a\\n\\nb\\r\\n\\r\\nc'", "a\n\nb\r\n\r\nc", ["a", "\n", "b", "\n", "c"]),
        ("printf 'a\\r'; sleep .3; printf '\\nb'", "a\r\nb", ["a", "b"]),
        ("printf '\\n\\n\\n'", "\n\n\n", ["\n", "\n", "\n"]),
        ("true", "", []),
    ):
        assert text(live.run(command)) == kept
        assert [event["text"] for event in strip.run(command) if event["type"] == "stdout"] == stripped


def test_a_line_of_any_length_arrives_in_pieces_of_bounded_size(live: Daemon, strip: Daemon) -> None:
    for own in (live, strip):
        events = own.run("head -c 8000000 /dev/zero | tr '\\0' x")
        pieces = [event["text"] for event in events if event["type"] == "stdout"]
        assert "".join(pieces) == "x" * 8_000_000
        assert max(map(len, pieces)) <= 32 * 1024
        assert terminals(events) == [len(events) - 1]


def test_stdout_and_stderr_are_kept_apart(live: Daemon) -> None:
    events = live.run("echo o; echo e >&2")
    assert [(e["type"], e["text"]) for e in events if e["type"].startswith("std")] in (
        [("stdout", "o\n"), ("stderr", "e\n")],
        [("stderr", "e\n"), ("stdout", "o\n")],
    )


def test_eids_grow_from_event_to_event(live: Daemon, strip: Daemon) -> None:
    for own in (live, strip):
        events = own.run("for i in $(seq 300); do echo $i; echo $i >&2; done; exit 1")
        eids = [event["eid"] for event in events]
        assert eids == sorted(set(eids))


def test_a_silent_stream_is_kept_alive_from_the_start() -> None:
    with daemon("--ping-interval", "200ms") as own:
        with following(own, "sleep 1.5; echo late") as events:
            seen = [event["type"] for event in events]
        assert seen[0] == "init"
        assert 4 <= seen.count("ping") <= 8
        assert seen[-2:] == ["stdout", "execution_complete"]


def test_pings_stop_while_there_is_output() -> None:
    with daemon("--ping-interval", "500ms") as own:
        with following(own, "for i in $(seq 20); do echo $i; sleep 0.05; done") as events:
            assert "ping" not in [event["type"] for event in events]


def test_the_default_silence_is_short_enough_for_proxies(live: Daemon) -> None:
    with following(live, "sleep 4") as events:
        started = time.monotonic()
        first(events, "ping")
        assert time.monotonic() - started < 4


def test_lost_output_breaks_the_stream_and_makes_no_outcome_up() -> None:
    with daemon("--output-memory", "128KiB") as own:
        with connection(own, command="head -c 20000000 /dev/zero | tr '\\0' x; echo END; sleep 300") as sock:
            command = command_id(read_until(sock, b"\r\n\r\n"))
            wait_until(lambda: own.status(command)["output"]["stdout_bytes"] == 20_000_004, 20, "all output")
            (own.state / f"{command}.out").write_bytes(b"")
            rest = read_until(sock, b"0\r\n\r\n")
        assert b"END" not in rest
        assert b'"outcome"' not in rest
        assert not rest.endswith(b"0\r\n\r\n")
        assert own.status(command)["running"] is True
        own.client.delete("/command", params={"id": command})


def test_background_starts_on_reused_connections_never_break_off(live: Daemon) -> None:
    limits = httpx.Limits(max_connections=20, max_keepalive_connections=20)
    with httpx.Client(base_url=live.url, limits=limits, trust_env=False) as client:

        def run(_: int) -> None:
            answer = client.post("/command", json={"command": "true", "background": True})
            assert answer.status_code == 200
            assert answer.text.count('"execution_complete"') == 1

        parallel(run, range(300), 60)


def test_the_log_says_nothing_of_what_streams() -> None:
    with daemon() as own:
        own.run("seq 1 300000")
        own.stop()
        assert len(own.log_text()) < 5000
