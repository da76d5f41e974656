"""Patterns: what they match, what they refuse, and that neither takes long."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given

from execd.services.globs import Glob, PatternError
from tests.listings import slow_globs
from tests.listings.slow_globs import One, Slash, Star, Token


def found(pattern: str, path: str, root: str = "/r") -> bool:
    """Whether a search for `pattern` in `root` comes to the file `path` below it, and takes it."""
    glob = Glob(pattern, root)
    *directories, name = path.split("/")
    state = glob.start
    for directory in directories:
        if state.names is not None and directory not in state.names:
            return False
        below = glob.child(state, directory)
        if below is None:
            return False
        state = below
    if state.names is not None and name not in state.names:
        return False
    return state.test is not None and bool(state.test(name))


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("*.py", "b.py a/b.py .py", "b.pyc a.py/b"),
        ("a", "a x/a", "b a/x aa A"),
        ("src/*.py", "src/x.py src/.py", "x.py src/a/x.py a/src/x.py"),
        ("src/**/*.py", "src/x.py src/a/x.py src/a/b/x.py", "x.py src/x"),
        ("**/src/*", "src/x a/b/src/x", "src/a/x"),
        ("src/**", "src/a src/a/b", "src a/src"),
        ("**", "a a/b .a", ""),
        ("**/**/a/**/**", "a/b x/a/b/c", "a b"),
        ("a/**/b/**/c", "a/b/c a/x/b/b/y/c", "a/c b/c"),
        ("a**b", "ab axb x/axxb", "a/b"),
        ("*/a**b", "x/ab x/axb", "x/a/b ab"),
        ("{a,b/{c,d}}/x", "a/x b/c/x b/d/x", "b/x c/x"),
        ("{*.py,*.pyi}", "a.py x/a.pyi", "a.pyc"),
        ("x{,y}", "x xy", "xyy y"),
        ("[a-c]?", "ab cz", "a dz abc"),
        ("[!a-c]", "d", "a"),
        ("[^a]", "b", "a"),
        ("[a-]", "a -", "b"),
        (r"[\]\-]", "] -", "a"),
        ("a,b", "a,b", "a b"),
        (r"\*\?\[\{", "*?[{", "a?[{"),
        ("./a/./b", "a/b", "a"),
        ("a//b", "a/b", "a"),
        ("/r/q/*.c", "q/a.c", "a.c r/q/a.c"),
        ("/*/q/*.c", "q/a.c", "a.c"),
        ("/**/a.c", "a.c q/a.c", "a.d"),
        ("{/r/q/*,*/z}", "q/a x/z", "x/a"),
        ("Ä*", "Äb", "äb"),
    ],
)
def test_a_pattern_matches_these_and_not_those(pattern: str, matching: str, others: str) -> None:
    for path in matching.split():
        assert found(pattern, path), path
    for path in others.split():
        assert not found(pattern, path), path


@pytest.mark.parametrize(
    ("pattern", "position"),
    [
        ("a[", 1),
        ("a[]", 1),
        ("[!]", 0),
        ("[a", 0),
        ("[a\\", 0),
        ("a[z-a]", 2),
        ("[a/b]", 2),
        ("a{b", 1),
        ("{a{b}", 0),
        ("ab}", 2),
        ("ab\\", 2),
        ("../a", 0),
        ("a/../b", 2),
        ("a/", 1),
        ("/", 0),
        ("", 0),
        (".", 0),
        ("{}", 0),
        ("a\0", 1),
        ("/elsewhere/*", 0),
        ("/rr/*", 0),
        ("a" * 4097, 4096),
        ("{" * 17 + "}" * 17, 16),
        ("{a,b}" * 11, 0),
    ],
)
def test_what_is_no_pattern_is_refused_with_the_position(pattern: str, position: int) -> None:
    with pytest.raises(PatternError, match=f"at position {position}$"):
        Glob(pattern, "/r")


def test_the_bounds_themselves_are_allowed() -> None:
    assert found("a" * 4096, "a" * 4096)
    assert found("{" * 16 + "a" + "}" * 16, "a")
    assert found("{a,b}" * 10, "abababbaba")


@given(slow_globs.patterns, slow_globs.paths)
@example((Star(), One("a", "a"), Star(), One("b", "b")), "aab")
@example((Star(), Slash(), Star()), "a/b")
def test_a_pattern_matches_what_trying_everything_matches(pattern: tuple[Token, ...], path: str) -> None:
    text = slow_globs.written(pattern)
    try:
        ours = found(text, path)
    except PatternError as error:
        assume("names no file" in str(error))  # else it is refused for a slash at its end, or its beginning
        ours = False
    assume(not text.startswith(("/", "{/")))
    assert ours == slow_globs.matches(pattern, path), text


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 2000 + "b",
        "**/*a*" * 600,
        "{*a,*b,*c}*{*a,*b}*{*a,*b,*c,*d}*{*x,*y}z",
        "[!a]*" * 800,
        "*" * 4095 + "x",
        "*" + "?" * 200 + "b",
        "**/a/" * 800 + "x",
    ],
)
def test_no_pattern_takes_long_for_any_name(pattern: str) -> None:
    for _ in range(5):  # hours, if a star were tried again: the test's own time limit would say so
        assert not found(pattern, "/".join(["a" * 255] * 4))


def test_a_state_knows_when_names_do_not_matter() -> None:
    glob = Glob("src/lib/*.py", "/r")
    assert glob.start.names == frozenset({"src"})
    below = glob.child(glob.start, "src")
    assert below is not None
    assert below.names == frozenset({"lib"})
    assert glob.child(glob.start, "other") is None
    deep = Glob("*.py", "/r")
    assert deep.child(deep.start, "any") is deep.start
