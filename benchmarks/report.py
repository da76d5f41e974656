"""Figures and how they are shown: a row each as soon as it is known, a summary, JSON for machines."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Of = Literal["value", "floor", "peer"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should reach: its value, or its ratio to the floor or the peer, against `bound`."""

    name: str
    of: Of
    bound: float
    at_most: bool = True

    def met(self, figure: Figure) -> bool | None:
        """None if what it compares with was not measured."""
        measured = {"value": figure.value, "floor": figure.ratio, "peer": figure.peer_ratio}[self.of]
        if measured is None:
            return None
        return measured <= self.bound if self.at_most else measured >= self.bound

    def text(self, unit: str) -> str:
        what = f" {unit}" if self.of == "value" else "x" if self.of == "floor" else "x peer"
        return f"{self.name} {'<=' if self.at_most else '>='} {self.bound:g}{what}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number, the median of its runs, beside the same of the floor and of the peer."""

    name: str
    unit: str
    value: float
    floor: float | None = None
    peer: float | None = None
    targets: tuple[Target, ...] = ()
    note: str = ""
    runs: Sequence[float] = ()
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        return self.value / self.floor if self.floor else None

    @property
    def peer_ratio(self) -> float | None:
        return self.value / self.peer if self.peer else None


def median(samples: Sequence[Mapping[str, float]], key: str) -> float:
    """The median of one measurement over several runs."""
    return statistics.median(sample[key] for sample in samples)


def spread(samples: Sequence[Mapping[str, float]], key: str) -> list[float]:
    """The single runs behind a median."""
    return [sample[key] for sample in samples]


class Report:
    """Collects figures and prints each as it comes."""

    def __init__(self, *, peer: bool) -> None:
        self._peer = peer
        self._figures: list[tuple[str, Figure]] = []

    def begin(self, group: str, about: str) -> None:
        """Start a group of figures; `about` says what the floor is."""
        peer = f"{'peer':>12}{'/ peer':>8}" if self._peer else ""
        print(f"\n{group}: {about}")
        print(f"  {'':46}{'execd':>12}{'floor':>12}{'/ floor':>8}{peer}  target", flush=True)

    def add(self, group: str, figure: Figure) -> None:
        self._figures.append((group, figure))
        unit = figure.unit
        row = f"  {figure.name:46}{_number(figure.value, unit):>12}"
        row += f"{_number(figure.floor, unit):>12}{_ratio(figure.ratio):>8}"
        if self._peer:
            row += f"{_number(figure.peer, unit):>12}{_ratio(figure.peer_ratio):>8}"
        verdicts = [
            f"{target.text(unit)}: {'met' if met else 'MISSED'}"
            for target in figure.targets
            if (met := target.met(figure)) is not None
        ]
        print(f"{row}  {', '.join(verdicts)}".rstrip(), flush=True)
        if figure.note:
            print(f"      {figure.note}", flush=True)

    def finish(self, seconds: float) -> None:
        """Say which targets were missed."""
        judged = [
            (group, figure, target, met)
            for group, figure in self._figures
            for target in figure.targets
            if (met := target.met(figure)) is not None
        ]
        missed = [entry for entry in judged if not entry[3]]
        print(f"\n{len(judged) - len(missed)} of {len(judged)} targets met, in {seconds:.0f} s")
        for group, figure, target, _ in missed:
            print(f"  missed: {group}, {figure.name}: {target.text(figure.unit)}")

    def write_json(self, path: Path) -> None:
        records = []
        for group, figure in self._figures:
            record = {"group": group, **dataclasses.asdict(figure)}
            record["ratio"], record["peer_ratio"] = figure.ratio, figure.peer_ratio
            for target, shown in zip(figure.targets, record["targets"], strict=True):
                shown["met"] = target.met(figure)
            records.append(record)
        path.write_text(json.dumps(records, indent=1) + "\n")


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 1000 else 1 if abs(value) >= 100 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f} {unit}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
