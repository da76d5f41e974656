"""Durations and sizes: what is shown can be read, and means the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from execd import values
from tests.properties import bounded

UNITS = {"h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


@bounded(300)
@given(milliseconds=st.integers(0, 10**12))
def test_a_duration_is_shown_as_it_is_read(milliseconds: int) -> None:
    seconds = milliseconds / 1000
    assert values.duration(values.show_duration(seconds)) == pytest.approx(seconds, rel=1e-12)


@bounded(100)
@given(microseconds=st.integers(0, 10**7))
def test_so_is_a_fraction_of_a_millisecond(microseconds: int) -> None:
    seconds = microseconds / 1_000_000
    assert values.duration(values.show_duration(seconds)) == pytest.approx(seconds, rel=1e-9)


@bounded(300)
@given(size=st.one_of(st.integers(0, 2**45), st.integers(0, 2**15).map(lambda n: n * 2**20)))
def test_a_size_is_shown_as_it_is_read(size: int) -> None:
    assert values.size(values.show_size(size)) == size


@bounded(300)
@given(parts=st.lists(st.tuples(st.integers(0, 999), st.sampled_from(list(UNITS))), min_size=1))
def test_a_duration_is_the_sum_of_its_parts(parts: list[tuple[int, str]]) -> None:
    text = "".join(f"{number}{unit}" for number, unit in parts)
    assert values.duration(text) == pytest.approx(sum(number * UNITS[unit] for number, unit in parts))


@bounded(500)
@given(text=st.one_of(st.text(max_size=8), st.from_regex(r"[0-9.]{0,4}[hmsnuKMGiB]{0,3}[0-9]{0,2}")))
def test_any_text_is_read_or_refused_with_what_is_allowed(text: str) -> None:
    parsers = (
        values.duration_from(0, 10),
        values.size_from(0, 2**30),
        values.whole(0, 9),
        values.log_level,
        values.one_of("a", "b"),
    )
    for parse in parsers:
        refusal = ""
        try:
            parse(text)
        except ValueError as problem:
            refusal = str(problem)
        assert refusal == "" or refusal.startswith(("a ", "one of "))
