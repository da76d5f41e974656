"""Ways in which an error can leave a live daemon, each with the code that it must have: bad requests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import httpx

from tests.edge import raw
from tests.support.live import Daemon

UNKNOWN = "0" * 32


@dataclass(frozen=True)
class Way:
    """`provoke` gets a daemon with default settings and gives the answer of `method` to `path`."""

    code: str
    method: str
    path: str
    provoke: Callable[[Daemon], httpx.Response]


WAYS: list[Way] = []


def way(
    code: str, method: str, path: str
) -> Callable[[Callable[[Daemon], httpx.Response]], Callable[[Daemon], httpx.Response]]:
    """Register a function as a way."""

    def add(provoke: Callable[[Daemon], httpx.Response]) -> Callable[[Daemon], httpx.Response]:
        WAYS.append(Way(code, method, path, provoke))
        return provoke

    return add


def sent(running: Daemon, data: bytes, method: str = "GET") -> httpx.Response:
    """The answer to exactly these bytes."""
    answer = raw.exchange(running.port, data, method)
    return httpx.Response(answer.status, headers=answer.headers, content=answer.body)


def post(running: Daemon, **body: object) -> httpx.Response:
    """The answer to `POST /command` with this body."""
    return running.client.post("/command", json=body)


def _wrong_body(name: str, content: bytes) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return running.client.post("/command", content=content)

    provoke.__name__ = name
    way("INVALID_REQUEST_BODY", "POST", "/command")(provoke)


_wrong_body("no_body", b"")
_wrong_body("bad_json", b"{")
_wrong_body("bytes_that_are_no_utf8", b'{"command":"\xff"}')
_wrong_body("half_a_surrogate_pair", rb'{"command":"\ud800"}')
_wrong_body("nested_without_end", b'{"envs":' * 5000)
_wrong_body("an_array", b"[]")
_wrong_body("wrong_type", b'{"command":1}')
_wrong_body("a_number_as_text", b'{"command":"true","timeout":"5"}')
_wrong_body("a_fraction", b'{"command":"true","timeout":1.5}')
_wrong_body("unknown_field", b'{"command":"true","comand":"true"}')
_wrong_body("neither_command_nor_argv", b"{}")
_wrong_body("both_command_and_argv", b'{"command":"true","argv":["true"]}')
_wrong_body("empty_program", b'{"argv":[""]}')
_wrong_body("negative_timeout", b'{"command":"true","timeout":-1}')
_wrong_body("gid_without_uid", b'{"command":"true","gid":0}')
_wrong_body("uid_beyond_the_last", b'{"command":"true","uid":4294967295}')
_wrong_body("a_nul_character", rb'{"command":"true\u0000"}')
_wrong_body("a_variable_without_name", b'{"command":"true","envs":{"":"x"}}')
_wrong_body("cwd_that_is_missing", b'{"command":"true","cwd":"/nowhere/at/all"}')
_wrong_body("cwd_that_is_a_file", b'{"command":"true","cwd":"/etc/passwd"}')
_wrong_body("cwd_of_an_undefined_variable", b'{"command":"true","cwd":"$NOT_DEFINED_HERE"}')


@way("COMMAND_START_FAILED", "POST", "/command")
def program_that_is_missing(running: Daemon) -> httpx.Response:
    return post(running, argv=["no-such-program"])


@way("COMMAND_START_FAILED", "POST", "/command")
def program_that_is_not_executable(running: Daemon) -> httpx.Response:
    return post(running, argv=["/etc/passwd"])


@way("COMMAND_START_FAILED", "POST", "/command")
def argument_that_is_too_long(running: Daemon) -> httpx.Response:
    return post(running, argv=["true", "x" * 200_000])


@way("COMMAND_START_FAILED", "POST", "/command")
def text_that_is_no_program(running: Daemon) -> httpx.Response:
    program = running.state.parent / "program"
    program.write_bytes(b"\x7fELF not really")
    program.chmod(0o755)
    return post(running, argv=[str(program)])


@way("MISSING_QUERY", "DELETE", "/command")
def missing_query(running: Daemon) -> httpx.Response:
    return running.client.delete("/command")


@way("MISSING_QUERY", "DELETE", "/command")
def empty_query(running: Daemon) -> httpx.Response:
    return running.client.delete("/command?id=")


@way("INVALID_QUERY", "GET", "/command/{id}/logs")
def negative_cursor(running: Daemon) -> httpx.Response:
    return running.client.get(f"/command/{UNKNOWN}/logs?cursor=-1")


@way("INVALID_QUERY", "GET", "/command/{id}/logs")
def cursor_beyond_all_offsets(running: Daemon) -> httpx.Response:
    return running.client.get(f"/command/{UNKNOWN}/logs?cursor={2**63}")


@way("COMMAND_NOT_FOUND", "GET", "/command/{id}/logs")
def logs_of_an_unknown_id(running: Daemon) -> httpx.Response:
    return running.client.get(f"/command/{UNKNOWN}/logs")


@way("COMMAND_NOT_FOUND", "GET", "/command/status/{id}")
def status_of_an_unknown_id(running: Daemon) -> httpx.Response:
    return running.client.get(f"/command/status/{UNKNOWN}")


@way("COMMAND_NOT_FOUND", "GET", "/command/status/{id}")
def status_of_an_id_that_is_no_text(running: Daemon) -> httpx.Response:
    return running.client.get("/command/status/%ff%00%e2%80%a8")


@way("COMMAND_NOT_FOUND", "DELETE", "/command")
def interrupt_of_an_unknown_id(running: Daemon) -> httpx.Response:
    return running.client.delete("/command", params={"id": UNKNOWN})


@way("NOT_FOUND", "GET", "/docs/{asset}")
def unknown_asset(running: Daemon) -> httpx.Response:
    return running.client.get("/docs/nothing.js")


@way("NOT_FOUND", "GET", "/docs/{asset}")
def path_out_of_the_assets(running: Daemon) -> httpx.Response:
    return running.client.get("/docs/..%2f..%2fetc%2fpasswd")


@way("NOT_FOUND", "GET", "")
def unknown_route(running: Daemon) -> httpx.Response:
    return running.client.get("/nowhere")


@way("NOT_FOUND", "GET", "")
def slash_at_the_end(running: Daemon) -> httpx.Response:
    return running.client.get("/ping/")


@way("METHOD_NOT_ALLOWED", "PATCH", "/command")
def wrong_method(running: Daemon) -> httpx.Response:
    return running.client.patch("/command", content=b"{}")


@way("HEADERS_TOO_LARGE", "GET", "/ping")
def large_header(running: Daemon) -> httpx.Response:
    return sent(running, raw.request("GET", "/ping", "X-Large: " + "x" * 70_000))


@way("HEADERS_TOO_LARGE", "GET", "/ping")
def large_request_line(running: Daemon) -> httpx.Response:
    return sent(running, raw.request("GET", "/ping?" + "x" * 70_000))


@way("BAD_REQUEST", "GET", "/ping")
def no_http(running: Daemon) -> httpx.Response:
    return sent(running, b"\x16\x03\x01 hello\r\n\r\n")


@way("BAD_REQUEST", "GET", "/ping")
def length_that_is_no_number(running: Daemon) -> httpx.Response:
    return sent(running, raw.request("GET", "/ping", "Content-Length: many"))
