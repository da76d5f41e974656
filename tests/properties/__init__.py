"""What must hold for any input. Examples are the same in every run; raise EXAMPLES to search for longer."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

EXAMPLES = float(os.environ.get("EXAMPLES", "1"))
"""Factor on the number of examples of every property."""


def bounded(examples: int, **options: int) -> settings:
    """Settings of one property: as many examples, always the same ones, no deadline for a single one."""
    return settings(
        max_examples=round(examples * EXAMPLES),
        derandomize=EXAMPLES == 1,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        report_multiple_bugs=False,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        **options,  # type: ignore[arg-type]
    )


AWKWARD = (
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"%",
    b"%b%d%%",
    b'"',
    b'","text":"",',
    b"\\",
    b"\\n",
    b"\x7f",
    b"\x00",
    b"\x1b[31m",
    b"\t",
    b"/",
    b"\xc3",
    b"\xa9",
    "é".encode(),
    "€".encode(),
    "\u2028".encode(),
    "\x85".encode(),
    "😀".encode(),
    b"\xf0\x9f",
    b"\x98\x80",
    b"\xed\xa0\x80",  # a surrogate
    b"\xc0\xaf",  # overlong
    b"\xf4\x90\x80\x80",  # beyond U+10FFFF
    b"\xff\xfe",
    b"data: {}",
    b"</script>",
)
"""Bytes that line splitters, decoders and JSON writers trip over."""


def awkward_bytes() -> st.SearchStrategy[bytes]:
    """Short byte strings made of those, of plain text and of anything."""
    part = st.one_of(
        st.sampled_from(AWKWARD), st.sampled_from([b"a", b"bc", b"x" * 40]), st.binary(max_size=4)
    )
    return st.lists(part, max_size=24).map(b"".join)
