"""Calls of several items: all are checked first, then they are done in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from execd.errors import ExecdError

Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


def each(
    items: Sequence[Item],
    check: Callable[[Item], Prepared],
    change: Callable[[Item, Prepared], None],
    name: Callable[[Item], str] = str,
) -> None:
    """Check every item, then change each with what its check gave. The first failure ends it.

    Raises:
        ExecdError: of a check, then nothing was changed; or of a change, then `details.done` names the items
            that were done.
    """
    prepared = [check(item) for item in items]
    done: list[str] = []
    for item, found in zip(items, prepared, strict=True):
        try:
            change(item, found)
        except ExecdError as error:
            also = (error.details or {}).get("done", [])
            raise error.partly_done([*done, *(also if isinstance(also, list) else [])]) from error
        done.append(name(item))
