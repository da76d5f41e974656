"""The env file: no text breaks it, and what `set_env` of the SDK writes comes back."""

from __future__ import annotations

import shlex

from hypothesis import given
from hypothesis import strategies as st
from opensandbox.adapters.converter.env_entry import build_set_env_command

from execd.posix import envfile
from tests.properties import bounded

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)
values = st.text(
    st.one_of(
        st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
        st.sampled_from("'\"\\$ \n\r\t#={}nA"),
    ),
    max_size=30,
)
file_text = st.lists(
    st.one_of(
        st.sampled_from(
            ["A=", "export ", "B='", 'C="', "'", '"', "\\", "$A", "${B}", "${", "$", "\n", "\r\n", "#", "\0"]
        ),
        st.text(max_size=5),
    ),
    max_size=30,
).map("".join)


def written(name: str, value: str) -> str:
    """What the SDK appends to the file."""
    words = shlex.split(build_set_env_command(name, value))
    return words[words.index(">>") - 1] + "\n"


@bounded(500)
@given(text=file_text, base=st.dictionaries(names, values, max_size=3))
def test_no_text_breaks_it(text: str, base: dict[str, str]) -> None:
    found = envfile.parse(text, base)
    assert all(name.isidentifier() and "\0" not in value for name, value in found.items())


@bounded(500)
@given(name=names, value=values)
def test_what_the_sdk_writes_comes_back(name: str, value: str) -> None:
    assert envfile.parse(written(name, value), {}) == {name: value}


@bounded(200)
@given(entries=st.dictionaries(names, values.filter(lambda value: "$" not in value), max_size=6))
def test_many_entries_come_back_and_the_last_one_counts(entries: dict[str, str]) -> None:
    text = "".join(written(name, "old") + written(name, value) for name, value in entries.items())
    assert envfile.parse(text, {}) == entries


@bounded(200)
@given(name=names, value=values)
def test_a_variable_that_is_not_set_stays_as_it_is_written(name: str, value: str) -> None:
    plain = "".join(value.split()).strip("'\"")
    assert envfile.parse(f"_x=/a/${name}/${{{name}}}{plain}", {}) == {"_x": f"/a/${name}/${{{name}}}{plain}"}
