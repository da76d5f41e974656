"""`$VAR` and `~` in paths."""

from __future__ import annotations

import os

import pytest

from execd.posix.paths import UndefinedVariables, expand

ENVIRONMENT = {"HOME": "/home/me", "W": "/srv", "REL": "sub", "TILDE": "~/x", "EMPTY": "", "D": "$W"}


@pytest.mark.parametrize(
    ("path", "expanded"),
    [
        ("/a/b", "/a/b"),
        ("$W", "/srv"),
        ("${W}/x$REL", "/srv/xsub"),
        ("/a$EMPTY/b", "/a/b"),
        ("~", "/home/me"),
        ("~/x", "/home/me/x"),
        ("~\\x", "/home/me/x"),
        ("$TILDE", "/home/me/x"),
        ("$D/x", os.path.join(os.getcwd(), "$W/x")),  # replaced once
        ("~other/x", os.path.join(os.getcwd(), "~other/x")),
        ("a/~", os.path.join(os.getcwd(), "a/~")),
        ("rel", os.path.join(os.getcwd(), "rel")),
        (".", os.path.join(os.getcwd(), ".")),
        ("/a/$", "/a/$"),
        ("/a/$1/${}", "/a/$1/${}"),
        ("/a/é $W", "/a/é /srv"),
    ],
)
def test_a_path_is_expanded_and_absolute(path: str, expanded: str) -> None:
    assert expand(path, ENVIRONMENT) == expanded


def test_every_variable_that_is_not_set_is_named_once() -> None:
    with pytest.raises(UndefinedVariables, match=r"variables: NO,NOPE$") as refused:
        expand("/$NO/${NOPE}/$W/$NO", ENVIRONMENT)
    assert refused.value.names == ["NO", "NOPE"]


def test_a_tilde_needs_a_home() -> None:
    with pytest.raises(UndefinedVariables, match="HOME"):
        expand("~/x", {})
