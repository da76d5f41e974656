"""Ways in which an error can leave a live daemon: files that cannot be written."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx

from tests.contract.ways import sent, way
from tests.contract.ways_of_downloads import UNPRIVILEGED, file
from tests.edge import raw
from tests.support.live import Daemon, daemon
from tests.support.uploads import TYPE, New, body, chunks, new, pair, part, post, put, upload

UPLOAD, CONTENT = "/files/upload", "/files/content"
IMPATIENT = (
    "import sys; sys.argv = ['execd', *sys.argv[4:]]\n"
    "import execd.api.body\n"
    "from execd.cli import main\n"
    "execd.api.body.SILENCE_SECONDS = 0.3\n"
    "main()"
)


@contextlib.contextmanager
def directory() -> Iterator[Path]:
    """A directory of its own, which anybody may enter."""
    with tempfile.TemporaryDirectory(prefix="execd-ways-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


def _refused(name: str, code: str, path: str, **fields: object) -> None:
    """Refused by both routes."""

    def upload_of(running: Daemon) -> httpx.Response:
        return upload(running, New(path, b"x", fields))

    def write_of(running: Daemon) -> httpx.Response:
        return put(running, path, query=fields)

    upload_of.__name__, write_of.__name__ = f"upload_{name}", f"write_{name}"
    way(code, "POST", UPLOAD)(upload_of)
    way(code, "PUT", CONTENT)(write_of)


_refused("over_a_directory", "INVALID_FILE", "/etc")
_refused("over_the_root", "INVALID_FILE", "/")
_refused("to_a_name_with_a_slash_at_its_end", "INVALID_FILE", "/tmp/new/")
_refused("over_a_device", "INVALID_FILE", "/dev/null")
_refused("below_a_file", "INVALID_FILE", "/etc/passwd/x")
_refused("to_a_name_that_is_too_long", "INVALID_FILE", "/tmp/" + "x" * 300)
_refused("to_a_path_that_is_too_long", "INVALID_FILE", "/x" * 3000)
_refused("to_an_undefined_variable", "INVALID_FILE", "$NOT_DEFINED_HERE/x")
_refused("for_an_unknown_owner", "INVALID_FILE_METADATA", "/tmp/execd-never", owner="nosuch")
_refused("for_an_unknown_group", "INVALID_FILE_METADATA", "/tmp/execd-never", group="nosuch")
_refused("for_a_number_that_is_no_id", "INVALID_FILE_METADATA", "/tmp/execd-never", owner="9" * 5000)


def _wrong_metadata(name: str, metadata: bytes) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return post(running, body(part("metadata", metadata), part("file", b"x")))

    provoke.__name__ = f"metadata_{name}"
    way("INVALID_FILE_METADATA", "POST", UPLOAD)(provoke)


_wrong_metadata("that_is_empty", b"")
_wrong_metadata("that_is_no_json", b"{")
_wrong_metadata("that_is_no_object", b"[]")
_wrong_metadata("without_a_path", b"{}")
_wrong_metadata("with_an_empty_path", b'{"path":""}')
_wrong_metadata("with_a_nul", rb'{"path":"/tmp/a\u0000"}')
_wrong_metadata("with_bytes_that_are_no_utf8", b'{"path":"/tmp/\xff"}')
_wrong_metadata("with_an_unknown_field", b'{"path":"/tmp/execd-never","modus":644}')
_wrong_metadata("with_a_mode_that_is_not_octal", b'{"path":"/tmp/execd-never","mode":489}')
_wrong_metadata("with_a_mode_beyond_the_last", b'{"path":"/tmp/execd-never","mode":10000}')
_wrong_metadata("with_a_negative_mode", b'{"path":"/tmp/execd-never","mode":-1}')
_wrong_metadata("with_a_mode_in_quotes", b'{"path":"/tmp/execd-never","mode":"644"}')
_wrong_metadata("that_is_too_large", b'{"path":"/tmp/' + b"x" * 70_000 + b'"}')


def _wrong_body(name: str, code: str, content: bytes, content_type: str = TYPE) -> None:
    def provoke(running: Daemon) -> httpx.Response:
        return post(running, content, content_type)

    provoke.__name__ = name
    way(code, "POST", UPLOAD)(provoke)


_wrong_body("upload_of_nothing", "INVALID_FILE_CONTENT", b"")
_wrong_body("upload_of_garbage", "INVALID_FILE_CONTENT", os.urandom(10_000))
_wrong_body("upload_of_no_pair", "INVALID_FILE_METADATA", body())
_wrong_body("upload_without_type", "INVALID_FILE_CONTENT", body(), "")
_wrong_body("upload_without_boundary", "INVALID_FILE_CONTENT", body(), "multipart/form-data")
_wrong_body("upload_of_json", "INVALID_FILE_CONTENT", b"{}", "application/json")
_wrong_body("upload_with_another_boundary", "INVALID_FILE_CONTENT", body(), TYPE + "x")
_wrong_body("file_without_metadata", "INVALID_FILE_METADATA", body(part("file", b"x")))
_wrong_body("part_with_another_name", "INVALID_FILE_CONTENT", body(part("other", b"x")))
_wrong_body("part_without_name", "INVALID_FILE_CONTENT", body().replace(b"--\r\n", b"\r\n\r\n\r\n") + body())
_wrong_body(
    "part_with_headers_that_are_too_large",
    "INVALID_FILE_CONTENT",
    body(part("metadata", b"{}", "X: " + "x" * 20_000)),
)
_wrong_body(
    "part_in_base64",
    "INVALID_FILE_CONTENT",
    body(part("metadata", b"e30=", "Content-Transfer-Encoding: base64")),
)


@way("INVALID_FILE", "POST", UPLOAD)
def metadata_without_file(running: Daemon) -> httpx.Response:
    with directory() as place:
        return post(running, body(part("metadata", new(place / "x").metadata)))


@way("INVALID_FILE", "POST", UPLOAD)
def two_metadata_and_one_file(running: Daemon) -> httpx.Response:
    with directory() as place:
        file = new(place / "x")
        return post(running, body(part("metadata", file.metadata), pair(file)))


@way("INVALID_FILE_CONTENT", "POST", UPLOAD)
def upload_without_its_end(running: Daemon) -> httpx.Response:
    with directory() as place:
        return post(running, pair(new(place / "x")))


@way("MISSING_QUERY", "PUT", CONTENT)
def write_of_nothing(running: Daemon) -> httpx.Response:
    return put(running, "")


@way("INVALID_FILE", "PUT", CONTENT)
def write_to_a_nul(running: Daemon) -> httpx.Response:
    return put(running, "/tmp/a\0b")


@way("INVALID_QUERY", "PUT", CONTENT)
def write_with_a_mode_that_is_not_octal(running: Daemon) -> httpx.Response:
    return put(running, "/tmp/execd-never", query={"mode": "489"})


@way("INVALID_QUERY", "PUT", CONTENT)
def write_that_may_be_an_append(running: Daemon) -> httpx.Response:
    return put(running, "/tmp/execd-never", query={"append": "perhaps"})


@way("INVALID_FILE_CONTENT", "PUT", CONTENT)
def write_of_a_part(running: Daemon) -> httpx.Response:
    return put(running, "/tmp/execd-never", headers={"Content-Range": "bytes 0-2/10"})


@way("INVALID_FILE_CONTENT", "PUT", CONTENT)
def write_that_is_compressed(running: Daemon) -> httpx.Response:
    return put(running, "/tmp/execd-never", headers={"Content-Encoding": "gzip"})


@way("PRECONDITION_FAILED", "PUT", CONTENT)
def write_over_what_should_not_be_there(running: Daemon) -> httpx.Response:
    with file() as path:
        return put(running, path, headers={"If-None-Match": "*"})


@way("PRECONDITION_FAILED", "PUT", CONTENT)
def write_over_another_version(running: Daemon) -> httpx.Response:
    with file() as path:
        return put(running, path, headers={"If-Match": '"another"'})


@way("PRECONDITION_FAILED", "PUT", CONTENT)
def write_over_what_should_be_there(running: Daemon) -> httpx.Response:
    with directory() as place:
        return put(running, place / "new", headers={"If-Match": "*"})


@way("FILE_NOT_FOUND", "POST", UPLOAD)
def upload_through_a_link_to_a_missing_directory(running: Daemon) -> httpx.Response:
    with directory() as place:
        (place / "link").symlink_to("missing/file")
        return upload(running, new(place / "link"))


@way("PERMISSION_DENIED", "POST", UPLOAD)
def upload_to_a_directory_of_somebody_else(_: Daemon) -> httpx.Response:
    with directory() as place, daemon(wrapper=UNPRIVILEGED if os.geteuid() == 0 else ()) as running:
        return upload(running, new("/etc/execd-never" if os.geteuid() else place / "new"))


@way("PERMISSION_DENIED", "PUT", CONTENT)
def write_over_a_file_of_somebody_else(_: Daemon) -> httpx.Response:
    with daemon(wrapper=UNPRIVILEGED if os.geteuid() == 0 else ()) as running:
        return put(running, "/etc/passwd")


@way("PATH_NOT_ALLOWED", "POST", UPLOAD)
def upload_to_outside_of_the_roots(_: Daemon) -> httpx.Response:
    with directory() as place, daemon("--roots", str(place)) as running:
        return upload(running, new(place.with_name("execd-never")))


@way("PATH_NOT_ALLOWED", "PUT", CONTENT)
def write_through_a_link_out_of_the_roots(_: Daemon) -> httpx.Response:
    with directory() as place, daemon("--roots", str(place)) as running:
        (place / "link").symlink_to("/tmp/execd-never")
        return put(running, place / "link")


@way("INSUFFICIENT_STORAGE", "PUT", CONTENT)
def announced_file_that_cannot_fit(running: Daemon) -> httpx.Response:
    with directory() as place:
        head = raw.request("PUT", f"{CONTENT}?path={place}/new", f"Content-Length: {2**60}")
        return sent(running, head, "PUT")


@way("INSUFFICIENT_STORAGE", "POST", UPLOAD)
def file_that_is_larger_than_a_file_may_be(_: Daemon) -> httpx.Response:
    with directory() as place, daemon(wrapper=("prlimit", "--fsize=1000000")) as running:
        return upload(running, new(place / "new", bytes(2_000_000)))


@way("REQUEST_TIMEOUT", "POST", UPLOAD)
def upload_that_stops_halfway(_: Daemon) -> httpx.Response:
    with directory() as place, daemon(wrapper=(sys.executable, "-c", IMPATIENT)) as running:
        head = raw.request("POST", UPLOAD, f"Content-Type: {TYPE}", "Content-Length: 9999")
        return sent(running, head + part("metadata", new(place / "new").metadata), "POST")


@way("REQUEST_TIMEOUT", "PUT", CONTENT)
def write_that_stops_halfway(_: Daemon) -> httpx.Response:
    with directory() as place, daemon(wrapper=(sys.executable, "-c", IMPATIENT)) as running:
        head = raw.request("PUT", f"{CONTENT}?path={place}/new", "Content-Length: 9999")
        return sent(running, head + b"some", "PUT")


@way("RESOURCE_EXHAUSTED", "POST", UPLOAD)
def upload_without_descriptors(_: Daemon) -> httpx.Response:
    from tests.contract.ways_of_limits import starved

    with directory() as place, daemon() as running, starved(running):
        return post(running, chunks(body(pair(new(place / "new")))))
