"""Content-Disposition for a file of any name (RFC 6266)."""

from __future__ import annotations

import os
import re
from typing import Final
from urllib.parse import quote

_UNSAFE: Final = re.compile(r"[^ !#$&-\[\]^-~]")
"""What a quoted string had better not hold: controls, quotes, backslashes, percent signs (some clients decode
them), and what is not ASCII."""
_ATTRIBUTE: Final = "!#$&+^`|"  # RFC 5987 attr-char, besides what quote() leaves alone


def attachment(name: str) -> str:
    """The field's value. `filename` is for old clients; if it is not the name itself, `filename*` has that,
    with U+FFFD for bytes that are no UTF-8 (surrogates in `name`).
    """
    plain = _UNSAFE.sub("_", name)
    if plain == name:
        return f'attachment; filename="{plain}"'
    text = os.fsencode(name).decode("utf-8", "replace")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(text, safe=_ATTRIBUTE)}"
