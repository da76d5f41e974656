"""Wire quirks that several models share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def _whole(value: object) -> object:
    # JSON has one kind of number, and in JSON Schema 5.0 is an integer.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _octal(digits: int) -> int:
    try:
        return int(str(digits), 8)
    except ValueError:
        raise ValueError("is no octal number written in digits, such as 644 or 1777") from None


Text = Annotated[str, AfterValidator(_without_nul)]
"""Any text without NUL."""
NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
WholeNumber = Annotated[int, BeforeValidator(_whole)]
Mode = Annotated[WholeNumber, Field(ge=0, le=7777), AfterValidator(_octal)]
"""Permission bits as octal digits in a decimal number on the wire: 755 there is 0o755 here."""
