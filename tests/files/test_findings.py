"""What only somebody who tried to break it thought of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.live import Daemon


def test_a_count_of_any_size_can_be_told(live: Daemon, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("O")
    wanted = {str(tmp_path / "f"): {"old": "O", "new": "x", "expected_count": 2**64}}
    answer = live.client.post("/files/replace", json=wanted)
    assert answer.status_code == 409
    assert answer.json()["details"]["expected"] == 2**64


def test_a_tree_that_is_removed_in_part_is_not_said_to_be_untouched(live: Daemon, tmp_path: Path) -> None:
    answer = live.run("mkdir -p aa mm zz && touch aa/f zz/f && mount -t tmpfs none mm", cwd=str(tmp_path))
    if answer[-1].get("exit_code") != 0:
        pytest.skip("NOT PROVED HERE: no right to mount")
    try:
        error = live.client.delete("/directories", params={"path": str(tmp_path)}).json()
        assert error["executed"] == "unknown"
        assert error["retryable"] is False
    finally:
        live.run("umount mm", cwd=str(tmp_path))


@pytest.mark.parametrize("end", ["/", "/."])
def test_a_file_is_not_deleted_as_a_directory(live: Daemon, tmp_path: Path, end: str) -> None:
    (tmp_path / "f").write_text("kept")
    answer = live.client.delete("/files", params={"path": str(tmp_path / "f") + end})
    assert answer.status_code == 400
    assert (tmp_path / "f").read_text() == "kept"


def test_a_body_of_a_million_fields_is_refused_before_it_is_parsed(live: Daemon) -> None:
    body = b"{" + b",".join(b'"%d":{}' % number for number in range(1_000_000)) + b"}"
    answer = live.client.post("/files/permissions", content=body)
    assert answer.status_code == 400
    assert "1000000 fields" in answer.json()["message"]
