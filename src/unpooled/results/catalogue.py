"""Which variables there are, and at which centers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from unpooled.results.data_frame import data_frame
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.parts import Grid, parts_html, parts_text

LACKS = "has no such variable, or does not allow it"
_WORDS = {"integer": "whole numbers", "float": "numbers", "boolean": "yes and no"}


def kind_word(kind: str) -> str:
    """What a column holds, in words.

    Examples
    --------
    >>> kind_word("float"), kind_word("text")
    ('numbers', 'text')
    """
    return _WORDS.get(kind, kind)


@dataclass(frozen=True, slots=True)
class CatalogueRow:
    """A variable: what is public about it, and what it is at each center that lets it be asked."""

    name: str
    kinds: Mapping[str, str]  # center → kind
    lacking: tuple[str, ...]  # centers that answered without it
    unit: str | None = None
    lower: float | None = None
    upper: float | None = None

    @property
    def kind(self) -> str:
        """What it is at most centers."""
        every = list(self.kinds.values())
        return max(dict.fromkeys(every), key=every.count)

    @property
    def problems(self) -> dict[str, str]:
        """Center → why it cannot be asked there like elsewhere."""
        differ = {
            center: f"has {kind_word(kind)}, others {kind_word(self.kind)}"
            for center, kind in self.kinds.items()
            if kind != self.kind
        }
        return dict.fromkeys(self.lacking, LACKS) | differ

    def to_dict(self) -> dict[str, Any]:
        """The variable as plain values."""
        return {
            "variable": self.name,
            "kind": self.kind,
            "unit": self.unit,
            "lower": self.lower,
            "upper": self.upper,
            "centers": list(self.kinds),
            "problems": self.problems,
        }


@dataclass(frozen=True, slots=True, repr=False)
class CatalogueResult:
    """The variables of all centers, those that most of them have first."""

    centers: tuple[str, ...]  # that answered
    rows: tuple[CatalogueRow, ...]
    refusals: tuple[CenterRefusal, ...] = ()

    def names(self, *kinds: str) -> tuple[str, ...]:
        """The variables of these kinds; without a kind, all."""
        return tuple(row.name for row in self.rows if not kinds or row.kind in kinds)

    def to_dict(self) -> dict[str, Any]:
        """The catalogue as plain values."""
        return {
            "centers": list(self.centers),
            "variables": [row.to_dict() for row in self.rows],
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def to_frame(self) -> Any:
        """A row per variable as a data frame."""
        return data_frame([{**row, "centers": len(row["centers"])} for row in self._records()])

    def _records(self) -> list[dict[str, Any]]:
        plain = [row.to_dict() for row in self.rows]
        return [{name: row[name] for name in row if name != "problems"} for row in plain]

    def _grid(self) -> Grid:
        rows = [
            [row.name, row.kind, row.unit or "", f"{len(row.kinds)} of {len(self.centers)}"]
            for row in self.rows
        ]
        return Grid(["variable", "kind", "unit", "centers"], rows)

    def __repr__(self) -> str:
        return parts_text("Variables", [self._grid()])

    def _repr_html_(self) -> str:
        return parts_html([self._grid()])


def sort_rows(rows: Sequence[CatalogueRow]) -> tuple[CatalogueRow, ...]:
    """Those that most centers have first, then by name."""
    return tuple(sorted(rows, key=lambda row: (-len(row.kinds), row.name.casefold())))
