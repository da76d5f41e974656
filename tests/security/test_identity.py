"""Whom a command runs as: ids, groups, HOME, and what a daemon without root can and cannot do."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.security.support import NOBODY, as_nobody, needs_root, open_directory, unprivileged
from tests.support.live import Daemon, daemon, text

STATUS = "grep -E '^(Uid|Gid|Groups)' /proc/self/status | tr -s '\\t ' ' '; echo $HOME $USER $LOGNAME"


@pytest.fixture(scope="module")
def plain() -> Iterator[Daemon]:
    with unprivileged() as running:
        yield running


def identity(running: Daemon, **fields: Any) -> tuple[int, int, list[int], str]:
    """Uid, gid (real, effective, saved and of the file system are the same), groups, and the last line."""
    lines = text(running.run(STATUS, **fields)).splitlines()
    values = [line.split()[1:] for line in lines[:3]]
    assert len(set(values[0])) == len(set(values[1])) == 1
    return int(values[0][0]), int(values[1][0]), [int(group) for group in values[2]], lines[3]


def existing(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        pytest.skip(f"there is no user {name} here")


@needs_root
@pytest.mark.parametrize("name", ["nobody", "www-data", "games"])
def test_a_uid_brings_its_primary_group_home_and_name(live: Daemon, name: str) -> None:
    user = existing(name)
    uid, gid, groups, variables = identity(live, uid=user.pw_uid)
    assert (uid, gid) == (user.pw_uid, user.pw_gid)
    assert user.pw_gid in groups
    assert variables == f"{user.pw_dir} {name} {name}"


@needs_root
def test_an_argument_list_runs_as_the_uid_too(live: Daemon) -> None:
    user = existing("nobody")
    assert text(live.run(argv=["id", "-u"], uid=user.pw_uid)) == f"{user.pw_uid}\n"
    command_id = live.background("id -u", uid=user.pw_uid)
    live.wait_ended(command_id)
    assert live.logs(command_id) == f"{user.pw_uid}\n".encode()


@needs_root
def test_a_uid_has_its_supplementary_groups_and_no_others(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("no unshare")
    passwd, group = tmp_path / "passwd", tmp_path / "group"
    passwd.write_text("# comment\nroot:x:0:0::/root:/bin/sh\nmaker:x:4242:4243:Maker,,:/srv/maker:/bin/sh\n")
    group.write_text(
        "root:x:0:root\nmaker:x:4243:\none:x:4244:maker,other\ntwo:x:4245:makers\nx:x:4246:maker\n"
    )
    mounts = f"mount --bind {passwd} /etc/passwd && mount --bind {group} /etc/group"
    if subprocess.run(
        ["unshare", "--mount", "sh", "-c", mounts], capture_output=True, check=False
    ).returncode:
        pytest.skip("no mount namespace to be had")
    with daemon(wrapper=("unshare", "--mount", "sh", "-c", f'{mounts} && exec "$@"', "sh")) as running:
        assert identity(running, uid=4242) == (4242, 4243, [4243, 4244, 4246], "/srv/maker maker maker")
        assert identity(running, uid=4242, gid=7) == (4242, 7, [7, 4244, 4246], "/srv/maker maker maker")
        # the files are read again when they change
        with group.open("a") as file:
            file.write("late:x:4247:maker\n")
        assert identity(running, uid=4242)[2] == [4243, 4244, 4246, 4247]


@needs_root
def test_a_uid_that_nobody_has_is_a_number_without_groups(live: Daemon) -> None:
    assert identity(live, uid=54_321) == (54_321, 54_321, [], "/ 54321 54321")
    assert identity(live, uid=54_321, gid=99)[:3] == (54_321, 99, [])


@needs_root
@pytest.mark.parametrize("uid", [2**32 - 2, 2**31, 65_536])
def test_a_large_uid_is_an_ordinary_one(live: Daemon, uid: int) -> None:
    assert identity(live, uid=uid)[:2] == (uid, uid)


@needs_root
def test_the_groups_of_root_do_not_stay_behind(live: Daemon) -> None:
    assert 0 not in identity(live, uid=NOBODY)[2]


@needs_root
def test_what_the_request_says_of_home_and_user_wins(live: Daemon) -> None:
    envs = {"HOME": "/mine", "LOGNAME": "me"}
    assert identity(live, uid=NOBODY, envs=envs)[3] == "/mine nobody me"


def test_without_a_uid_a_command_runs_as_the_daemon_does(live: Daemon) -> None:
    assert identity(live)[:2] == (os.getuid(), os.getgid())


@needs_root
def test_uid_0_is_root_and_not_the_same_as_no_uid(live: Daemon, plain: Daemon) -> None:
    assert identity(live, uid=0)[:2] == (0, 0)
    answer = plain.client.post("/command", json={"command": "id", "uid": 0})
    assert answer.status_code == 400
    assert identity(plain)[:2] == (NOBODY, NOBODY)


@pytest.mark.parametrize("fields", [{"gid": 1}, {"gid": 0}, {"gid": 1, "uid": None}])
def test_a_gid_without_a_uid_is_refused(live: Daemon, fields: dict[str, int | None]) -> None:
    answer = live.client.post("/command", json={"command": "id", **fields})
    assert answer.status_code == 400
    assert answer.json()["code"] == "INVALID_REQUEST_BODY"
    assert "gid" in answer.json()["message"]


@pytest.mark.parametrize("uid", [-1, 2**32 - 1, 2**32, 1.5, "0", True, [0]])
def test_what_is_no_uid_is_refused_by_name(live: Daemon, uid: object) -> None:
    answer = live.client.post("/command", json={"command": "id", "uid": uid})
    assert answer.status_code == 400
    assert answer.json()["details"] == {"field": "uid"}


@needs_root
@pytest.mark.parametrize(
    ("fields", "missing"),
    [
        pytest.param({"uid": 0}, ["CAP_SETUID", "CAP_SETGID"], id="root"),
        pytest.param({"uid": 1}, ["CAP_SETUID", "CAP_SETGID"], id="other"),
        pytest.param({"uid": NOBODY, "gid": 1}, ["CAP_SETGID"], id="other-group"),
    ],
)
def test_a_daemon_that_may_not_switch_names_the_capability(
    plain: Daemon, tmp_path: Path, fields: dict[str, int], missing: list[str]
) -> None:
    answer = plain.client.post("/command", json={"command": f"touch {tmp_path}/ran", **fields})
    assert answer.status_code == 400
    error = answer.json()
    assert error["code"] == "IDENTITY_NOT_PERMITTED"
    assert error["details"] == {"field": "uid", "missing_capabilities": missing}
    assert all(name in error["message"] for name in missing)
    assert not list(tmp_path.iterdir())


@needs_root
@pytest.mark.parametrize("fields", [{}, {"uid": NOBODY}, {"uid": NOBODY, "gid": NOBODY}])
def test_a_daemon_without_root_runs_commands_as_itself(plain: Daemon, fields: dict[str, int]) -> None:
    assert identity(plain, **fields)[:2] == (NOBODY, NOBODY)


@needs_root
def test_the_capabilities_are_enough_to_switch() -> None:
    caps = "+setuid,+setgid"
    with unprivileged(wrapper=("--ambient-caps", caps, "--inh-caps", caps)) as running:
        assert identity(running)[:2] == (NOBODY, NOBODY)
        assert identity(running, uid=1, gid=2)[:2] == (1, 2)


@needs_root
def test_a_command_of_another_user_is_ended_with_all_it_started(live: Daemon) -> None:
    command_id = live.background("sleep 300 & setsid sleep 300 & wait", uid=NOBODY)
    assert live.client.delete("/command", params={"id": command_id}).status_code == 200
    ended = live.wait_ended(command_id)
    assert ended["outcome"]["kind"] == "interrupted"


@needs_root
def test_a_program_that_the_user_may_not_run_is_refused(live: Daemon) -> None:
    with open_directory() as directory:
        program = directory / "program"
        program.write_text("#!/bin/sh\necho ran\n")
        program.chmod(0o700)
        answer = live.client.post("/command", json={"argv": [str(program)], "uid": NOBODY})
        assert answer.status_code == 400
        assert answer.json()["code"] == "COMMAND_START_FAILED"
        assert answer.json()["details"]["errno"] == "EACCES"
        assert text(live.run(argv=[str(program)])) == "ran\n"


@needs_root
@pytest.mark.parametrize("where", ["closed", "closed/inside"])
def test_a_directory_that_the_user_may_not_enter_is_refused(live: Daemon, where: str) -> None:
    with open_directory() as directory:
        (directory / "closed" / "inside").mkdir(parents=True)
        (directory / "closed").chmod(0o700)
        body = {"command": f"touch {directory}/ran", "cwd": str(directory / where)}
        answer = live.client.post("/command", json={**body, "uid": NOBODY})
        assert answer.status_code == 400
        assert answer.json()["details"]["field"] == "cwd"
        assert "Permission denied" in answer.json()["message"]
        (directory / "closed").chmod(0o710)
        os.chown(directory / "closed", 0, NOBODY)
        assert text(live.run("pwd", cwd=str(directory / where), uid=NOBODY)) == f"{directory / where}\n"


def test_the_wrapper_of_these_tests_gives_up_root() -> None:
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv")
    shown = subprocess.run([*as_nobody(), "id", "-u"], capture_output=True, check=True).stdout
    assert shown == f"{NOBODY}\n".encode()
