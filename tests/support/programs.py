"""Misbehaving programs, as shell text. Those with processes to look for print their pids, one a line."""

from __future__ import annotations

from typing import Final

_LOOP: Final = "while :; do sleep 0.1; done"

IGNORES_TERM: Final = f"trap '' TERM; echo $$; {_LOOP}"
CHILD_IGNORES_TERM: Final = f"(trap '' TERM; echo $BASHPID; {_LOOP}) & echo $$; wait"
LEADER_GOES_AT_ONCE: Final = f"(trap '' TERM; echo $BASHPID; {_LOOP}) & echo $$; trap 'exit 0' TERM; wait"
"""On TERM the leader exits 0 while its child stays: then only the group tells whose child it is."""
DOUBLE_FORKS: Final = "( (sleep 300 & echo $!) & ); echo $$; sleep 300"
ESCAPES_BY_SETSID: Final = "setsid sleep 300 & echo $! $$; wait"
ESCAPES_AND_IGNORES_TERM: Final = (
    f"setsid bash -c \"trap '' TERM; echo \\$\\$; {_LOOP}\" & echo $$; trap 'exit 0' TERM; wait"
)
ESCAPEES_CHILD: Final = (
    'setsid bash -c "sleep 300 & echo \\$! \\$\\$; env -i sleep 300 & echo \\$!; wait" & echo $$; wait'
)
"""An escapee with two children, one of them without the mark in its environment."""
STOPS_ITSELF: Final = "sleep 300 & echo $! $$; kill -STOP $$; wait"
MANY_CHILDREN: Final = "for i in $(seq 40); do (sleep 300 & echo $!; wait) & done; echo $$; wait"
KEEPS_FORKING: Final = (
    "trap '' TERM; for i in 1 2 3; do (for j in $(seq 400); do (sleep 0.05); done; exec sleep 300) & done; "
    "echo $$; wait"
)
"""Always has children that did not exist a moment ago; at most six at once, 1200 in all."""
CLOSES_OUTPUT_BUT_LIVES: Final = "echo bye; exec >&- 2>&-; sleep 0.5; exit 7"

TREES: Final = {
    "ignores-term": IGNORES_TERM,
    "child-ignores-term": CHILD_IGNORES_TERM,
    "leader-goes-at-once": LEADER_GOES_AT_ONCE,
    "double-forks": DOUBLE_FORKS,
    "escapes-by-setsid": ESCAPES_BY_SETSID,
    "escapes-and-ignores-term": ESCAPES_AND_IGNORES_TERM,
    "children-of-an-escapee": ESCAPEES_CHILD,
    "stops-itself": STOPS_ITSELF,
    "many-children": MANY_CHILDREN,
    "keeps-forking": KEEPS_FORKING,
}
"""Trees that must be gone, whole, once they were ended by force; how many pids each prints at least is
`PIDS`."""
PIDS: Final = {"ignores-term": 1, "keeps-forking": 1, "many-children": 41, "children-of-an-escapee": 4}


def left_behind(interval: float, lines: int) -> str:
    """Exits at once with 5; a child goes on to write `lines` numbered lines, then one that says so."""
    return f"(for i in $(seq {lines}); do echo line $i; sleep {interval}; done; echo all written) & exit 5"


def floods_after_exit(megabytes: int) -> str:
    """Exits 0 at once; a child that it leaves writes that much as fast as it can."""
    return f"(yes | head -c {megabytes * 1000 * 1000}) & exit 0"
