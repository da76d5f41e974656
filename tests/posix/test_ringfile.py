"""The file that keeps the last bytes: its place, its descriptor, its end."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from execd.posix.ringfile import RingFile


@pytest.fixture
def directory_fd(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_the_file_is_private_and_made_only_when_there_is_something_to_write(
    directory_fd: int, tmp_path: Path
) -> None:
    ring = RingFile(directory_fd, "kept", 10)
    with pytest.raises(FileNotFoundError):
        ring.read(0, 1)
    assert os.listdir(tmp_path) == []
    ring.write(0, [b"abc", bytearray(b"de")])
    assert stat.S_IMODE(os.stat(tmp_path / "kept").st_mode) == 0o600
    assert ring.read(1, 3) == b"bcd"
    ring.remove()
    assert os.listdir(tmp_path) == []


def test_a_symlink_in_its_place_is_not_followed(directory_fd: int, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    (tmp_path / "kept").symlink_to(target)
    with pytest.raises(FileExistsError):
        RingFile(directory_fd, "kept", 10).write(0, [b"x"])
    assert target.read_bytes() == b"precious"


def test_a_symlink_put_there_later_is_not_followed_either(directory_fd: int, tmp_path: Path) -> None:
    ring = RingFile(directory_fd, "kept", 10)
    ring.write(0, [b"mine"])
    ring.close()
    (tmp_path / "kept").unlink()
    (tmp_path / "kept").symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links") as refused:
        ring.read(0, 4)
    assert refused.value.errno == errno.ELOOP


def test_a_file_that_was_truncated_from_outside_is_an_error_not_a_hole(
    directory_fd: int, tmp_path: Path
) -> None:
    ring = RingFile(directory_fd, "kept", 10)
    ring.write(0, [b"0123456789"])
    os.truncate(tmp_path / "kept", 5)
    assert ring.read(0, 5) == b"01234"
    with pytest.raises(OSError, match="truncated") as refused:
        ring.read(3, 4)
    assert refused.value.errno == errno.EIO


def test_a_write_that_failed_at_once_leaves_no_file_and_can_be_tried_again(
    directory_fd: int, tmp_path: Path
) -> None:
    ring = RingFile(directory_fd, "kept", 100)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limit[1]))  # Python ignores SIGXFSZ: EFBIG is left
    try:
        with pytest.raises(OSError, match="too large"):
            ring.write(0, [b"abc"])
        ring.close()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    ring.write(0, [b"abc"])
    assert ring.read(0, 3) == b"abc"
    ring.remove()
    assert os.listdir(tmp_path) == []


def test_removing_it_twice_or_after_its_directory_is_gone_is_fine(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    fd = os.open(place, os.O_RDONLY)
    ring = RingFile(fd, "kept", 10)
    ring.write(0, [b"x"])
    (place / "kept").unlink()
    place.rmdir()
    ring.remove()
    ring.remove()
    os.close(fd)


def test_a_closed_one_holds_no_descriptor_also_after_it_was_read(directory_fd: int) -> None:
    before = descriptors()
    ring = RingFile(directory_fd, "kept", 10)
    ring.write(0, [b"abc"])
    ring.close()
    assert descriptors() == before
    assert ring.read(0, 3) == b"abc"
    assert descriptors() == before
    ring.remove()
    assert descriptors() == before


def test_closing_and_removing_never_hits_a_read_under_way(directory_fd: int) -> None:
    size = 512 * 1024
    with ThreadPoolExecutor(1) as pool:
        for _ in range(100):
            ring = RingFile(directory_fd, "kept", size)
            ring.write(0, [b"\7" * size])
            reading = pool.submit(ring.read, 0, size)
            ring.close()
            others = [os.open("/dev/zero", os.O_RDONLY) for _ in range(4)]  # they take free numbers
            ring.remove()
            with contextlib.suppress(FileNotFoundError):  # it came too late
                assert reading.result() == b"\7" * size
            for fd in others:
                os.close(fd)


def test_what_is_written_after_a_removal_is_a_new_file(directory_fd: int, tmp_path: Path) -> None:
    ring = RingFile(directory_fd, "kept", 100)
    ring.write(0, [b"old"])
    ring.remove()
    ring.write(3, [b"new"])
    assert ring.read(3, 3) == b"new"
    assert (tmp_path / "kept").stat().st_size == 6
