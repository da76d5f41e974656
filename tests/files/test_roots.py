"""EXECD_ROOTS: every file route works below them and nowhere else, whatever a path looks like or becomes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from execd.app import ROUTES as APP_ROUTES
from tests.support.files import Api, ok, refused, snapshot, swapping
from tests.support.live import Daemon, daemon
from tests.support.routes import ROUTES, Route, route

REMOVING = {"DELETE /files", "DELETE /directories", "POST /files/mv src"}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("base")
    for name in ("root", "more", "outside", "outside/directory", "rooted"):
        (path / name).mkdir()
    (path / "outside" / "file").write_bytes(b"old")
    return path


@pytest.fixture(scope="module")
def rooted(base: Path) -> Iterator[Daemon]:
    """A daemon whose file routes may work below `base/root` and `base/more` only."""
    with daemon(env={"EXECD_ROOTS": f"{base}/root:{base}/more"}) as running:
        yield running


@pytest.fixture
def outside(base: Path) -> Iterator[Path]:
    """What must be afterwards as it was before."""
    before = snapshot(base / "outside"), sorted(os.listdir(base))
    yield base / "outside"
    assert (snapshot(base / "outside"), sorted(os.listdir(base))) == before


@pytest.fixture
def inside(base: Path, request: pytest.FixtureRequest) -> Path:
    """A directory of its own below the first root."""
    path = base / "root" / f"test-{abs(hash(request.node.name))}"
    path.mkdir()
    return path


def _wanted(directory: Path, route: Route) -> Path:
    path = directory / "thing"
    if route.wants == "file":
        path.write_bytes(b"old")
    elif route.wants == "directory":
        path.mkdir()
    return path


def test_the_table_has_every_route_that_takes_a_path() -> None:
    served = {(m, found.path) for found in APP_ROUTES for m in found.methods or () if m != "HEAD"}
    files = {(method, path) for method, path in served if path.startswith(("/files", "/directories"))}
    assert {(found.method, found.path) for found in ROUTES} == files


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_inside_of_a_root_all_is_as_ever(rooted: Daemon, inside: Path, base: Path, route: Route) -> None:
    assert route.ask(rooted, str(_wanted(inside, route))).status_code in (200, 201)
    second = base / "more" / inside.name
    second.mkdir()
    assert route.ask(rooted, f"{inside}/../../more/{second.name}/thing").status_code in (200, 201, 404)
    assert route.ask(rooted, str(_wanted(second, route))).status_code in (200, 201)


@pytest.mark.parametrize("target", ["file", "directory", "missing", "missing/inner", "file/x", "."])
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_outside_all_is_refused_alike_by_whatever_name(
    rooted: Daemon, inside: Path, outside: Path, route: Route, target: str
) -> None:
    (inside / "out").symlink_to(outside)
    (inside / "up").symlink_to("../..")
    names = [
        f"{outside}/{target}",
        f"{inside}/../../outside/{target}",
        f"{inside}/out/./{target}",
        f"{inside}/up/outside/{target}",
        f"/proc/self/root{outside}/{target}",
    ]
    for name in names:
        refused(route.ask(rooted, name), "PATH_NOT_ALLOWED", path=name)


@pytest.mark.parametrize("route", [found for found in ROUTES if found.follows], ids=str)
def test_a_link_out_is_refused_where_links_are_followed(
    rooted: Daemon, inside: Path, outside: Path, route: Route
) -> None:
    for number, target in enumerate(["file", "directory", "missing", "missing/inner"]):
        link = inside / str(number)
        link.symlink_to(outside / target)
        (inside / f"again-{number}").symlink_to(link.name)
        for name in (link, inside / f"again-{number}"):
            refused(route.ask(rooted, str(name)), "PATH_NOT_ALLOWED", path=str(name))


@pytest.mark.parametrize(
    "name", ["GET /files/info", "DELETE /files", "POST /files/mv src", "DELETE /directories"]
)
def test_a_link_out_is_a_thing_inside_where_links_are_not_followed(
    rooted: Daemon, inside: Path, outside: Path, name: str
) -> None:
    (inside / "link").symlink_to(outside / "directory")
    assert route(name).ask(rooted, str(inside / "link")).status_code == 200


def test_nothing_is_moved_out_or_in(rooted: Daemon, inside: Path, outside: Path) -> None:
    api = Api(rooted)
    (inside / "file").write_bytes(b"x")
    (inside / "out").symlink_to(outside)
    for target in (outside / "new", outside / "a" / "new", inside / "out" / "new", outside / "file"):
        refused(api.move((inside / "file", target)), "PATH_NOT_ALLOWED", field="dest")
    refused(api.move((outside / "file", inside / "new")), "PATH_NOT_ALLOWED", field="src")
    ok(api.move((inside / "file", f"{inside}/../../more/{inside.name}-file")))


@pytest.mark.parametrize("spelled", ["{}", "{}/", "{}/.", "{}/x/.."])
@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_root_itself_may_be_looked_at_but_not_go(
    rooted: Daemon, base: Path, outside: Path, route: Route, spelled: str
) -> None:
    (base / "more" / "x").mkdir(exist_ok=True)
    answer = route.ask(rooted, spelled.format(base / "more"))
    if str(route) in REMOVING:
        refused(answer, "PATH_NOT_ALLOWED")
    elif route.wants == "new file":
        refused(answer, "PATH_NOT_ALLOWED" if not spelled.endswith("/") else "INVALID_FILE")
    elif route.wants == "file" and str(route) not in (
        "GET /files/info",
        "POST /files/permissions",
    ):
        refused(answer, "INVALID_FILE")
    else:
        assert answer.status_code == 200, answer.text
    assert (base / "more" / "x").is_dir()


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_name_that_only_begins_like_a_root_is_outside(
    rooted: Daemon, base: Path, outside: Path, route: Route
) -> None:
    refused(route.ask(rooted, f"{base}/rooted/thing"), "PATH_NOT_ALLOWED")
    assert os.listdir(base / "rooted") == []


def test_roots_may_be_links_themselves_and_are_shown(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with daemon("--roots", str(tmp_path / "link")) as running:
        api = Api(running)
        ok(api.mkdir(tmp_path / "link" / "a", tmp_path / "real" / "b"))
        assert running.client.get("/capabilities").json()["features"]["roots"] == [str(tmp_path / "link")]
        (tmp_path / "link").unlink()
        (tmp_path / "link").symlink_to("/etc")
        refused(api.info(tmp_path / "link" / "passwd"), "PATH_NOT_ALLOWED")


def test_a_root_that_was_swapped_is_no_root_any_more(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "file").write_bytes(b"old")
    with daemon("--roots", str(root)) as running:
        root.rename(tmp_path / "old")
        root.symlink_to(outside)
        refused(Api(running).delete(root / "file"), "PATH_NOT_ALLOWED")
        refused(Api(running).info(tmp_path / "old"), "PATH_NOT_ALLOWED")
    assert (outside / "file").exists()


@pytest.mark.parametrize("route", ROUTES, ids=str)
def test_a_directory_that_becomes_a_link_out_and_back_all_the_time_never_leads_out(
    rooted: Daemon, inside: Path, outside: Path, route: Route
) -> None:
    flip, link = inside / "flip", inside / "link"
    flip.mkdir()
    link.symlink_to(outside)
    with swapping(flip, link):
        seen = {route.ask(rooted, f"{flip}/file").status_code for _ in range(60)}
        seen |= {route.ask(rooted, f"{flip}/new/directory").status_code for _ in range(20)}
    assert seen <= {200, 201, 400, 403, 404, 409}


@pytest.mark.parametrize("name", ["GET /files/info", "GET /files/download"])
def test_nothing_of_the_other_side_is_ever_shown(
    rooted: Daemon, inside: Path, outside: Path, name: str
) -> None:
    flip, link = inside / "flip", inside / "link"
    flip.mkdir()
    (flip / "file").write_bytes(b"inside")
    link.symlink_to(outside)
    with swapping(flip, link):
        answers = [route(name).ask(rooted, f"{flip}/file") for _ in range(200)]
    shown = {answer.content for answer in answers if answer.status_code == 200}
    assert shown == {b"inside"} or all(b'"size":6' in content for content in shown)
    assert {answer.status_code for answer in answers} <= {200, 403}
