"""Table 1: who the people of a study are, group by group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from unpooled.errors import InputError
from unpooled.results.crosstab import count_cell
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal
from unpooled.results.report.folding import fold_notes
from unpooled.results.report.page import Figure, Section
from unpooled.results.report.parts import Grid, Part, Remarks, Sentences
from unpooled.results.report.text import number, p_text
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair

Layout = Literal["full", "gtsummary", "tableone"]
LAYOUTS = ("full", "gtsummary", "tableone")
FORMATS = (".txt", ".md", ".html", ".csv", ".tex", ".docx")
OVERALL = "Overall"
_MARKS = "abcdefghijklmnopqrstuvwxyz"
_INDENT = "\N{NO-BREAK SPACE}\N{NO-BREAK SPACE}"


@dataclass(frozen=True, slots=True)
class Numbers:
    """A number in one column: None is what is not known."""

    group: str
    n: int
    missing: int | None  # None: fewer than K at some center
    mean: float | None
    sd: float | None
    median: float | None
    q1: float | None
    q3: float | None

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class LevelCell:
    """How many people of a column have a level: at least and at most, of how many."""

    group: str
    low: int
    high: int
    people: int

    def to_dict(self) -> dict[str, Any]:
        """As plain values; `n` and `percent` where they are known exactly."""
        exact = self.low == self.high
        share = 100 * self.low / self.people if exact and self.people else None
        n = self.low if exact else None
        return {"group": self.group, "n": n, "percent": share, "low": self.low, "high": self.high}


@dataclass(frozen=True, slots=True)
class Table1Row:
    """One variable: numbers of each column, or cells of each level, the overall column first."""

    variable: str
    kind: Literal["number", "category"]
    label: str
    unit: str | None
    numbers: tuple[Numbers, ...] = ()
    levels: tuple[tuple[str, tuple[LevelCell, ...]], ...] = ()
    missing: tuple[int | None, ...] = ()  # of each column, at least; None: fewer than K somewhere
    missing_more: tuple[bool, ...] = ()  # whether fewer than K people of some center come on top
    test: str | None = None
    log10_p: float | None = None
    smd: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The label with its unit."""
        return self.label if self.unit is None else f"{self.label}, {self.unit}"

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "variable": self.variable,
            "kind": self.kind,
            "label": self.label,
            "unit": self.unit,
            "levels": [
                {"level": level, "cells": [cell.to_dict() for cell in cells]}
                for level, cells in self.levels
            ],
            "cells": [numbers.to_dict() for numbers in self.numbers],
            "missing": list(self.missing),
            "missing_more": list(self.missing_more) or [False] * len(self.missing),
            "test": self.test,
            "p_value": None if self.log10_p is None else 10**self.log10_p,
            "log10_p": self.log10_p,
            "smd": self.smd,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table ready to be written: cells, which rows are indented, and what stands below."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    indented: tuple[bool, ...]
    footnotes: tuple[tuple[str, str], ...]  # the mark, and what it means; notes have no mark


@dataclass(frozen=True, slots=True, repr=False)
class Table1Result(Result):
    """Who the people are: a column for everybody, one for each group, tests and differences."""

    by: str | None
    where: str | None
    groups: tuple[str, ...]
    n: Mapping[str, int]  # column → people, everybody first
    rows: tuple[Table1Row, ...]
    centers: tuple[str, ...]
    refusals: tuple[CenterRefusal, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # variables without a row, and why
    layout: Layout = "full"
    record: Record = field(default_factory=Record)

    @property
    def variable(self) -> str:
        """What it is about, for words that need one name."""
        return "table 1"

    @property
    def reach(self) -> Reach:
        """Whom it is of."""
        return Reach.of(self.centers, self.n.get(OVERALL, 0), self.record, self.refusals)

    @property
    def title(self) -> str:
        """What it shows."""
        return f"{subject('Table 1', self.by, self.where)}: {self.reach}"

    @property
    def answer(self) -> str:
        """What the groups differ in."""
        differ = [
            row.label for row in self.rows if row.log10_p is not None and row.log10_p < -1.301
        ]
        if len(self.groups) < 2:
            return f"{len(self.rows)} variables, {self.reach}."
        shown = ", ".join(differ) or "nothing"
        return f"Groups of {self.by} differ (p < 0.05) in {shown}, {self.reach}."

    def sheet(self, layout: Layout | None = None) -> Sheet:
        """The table as cells, in one of the layouts."""
        return _Writer(self, self.layout if layout is None else _checked(layout)).sheet()

    def parts(self) -> list[Part]:
        """The table and its footnotes."""
        sheet = self.sheet()
        shown = [
            (f"{_INDENT if indented else ''}{first}", *rest)
            for (first, *rest), indented in zip(sheet.rows, sheet.indented, strict=True)
        ]
        marks = Sentences([f"{mark} {text}" for mark, text in sheet.footnotes if mark])
        left = Remarks("Left out", [("left out", f"{name}: {why}") for name, why in self.left_out])
        return [Grid(sheet.header, shown), marks, left]

    def records(self) -> list[dict[str, Any]]:
        """A row per variable, level and column."""
        records: list[dict[str, Any]] = []
        for row in self.rows:
            about = {
                "variable": row.variable,
                "level": None,
                "log10_p": row.log10_p,
                "smd": row.smd,
            }
            records += [{**about, **numbers.to_dict()} for numbers in row.numbers]
            records += [
                {**about, "level": level, **cell.to_dict()}
                for level, cells in row.levels
                for cell in cells
            ]
        return records

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values."""
        return {
            "by": self.by,
            "where": self.where,
            "groups": list(self.groups),
            "n": dict(self.n),
            "rows": [row.to_dict() for row in self.rows],
            "left_out": [{"variable": name, "problem": why} for name, why in self.left_out],
            "centers": list(self.centers),
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
        }

    def picture(self) -> Figure | None:
        """The love plot."""
        if not any(row.smd is not None for row in self.rows):
            return None
        return Figure(
            self.chart(), "Standardised differences; beyond the dashed lines more than .1."
        )

    def sections(self) -> list[Section]:
        """The table, and how much the groups differ."""
        picture = self.picture()
        return [Section("Table 1", self.parts(), [] if picture is None else [picture])]

    def chart(self) -> "altair.TopLevelMixin":
        """The love plot: each variable's standardised difference."""
        from unpooled.results.charts.charts import love

        return love([(row.label, row.smd) for row in self.rows if row.smd is not None])

    def write(self, path: str | Path, layout: Layout | None = None) -> Path:
        """Write the table to a file: .txt, .md, .html, .csv, .tex or .docx.

        `layout` is "full", or as "gtsummary" or "tableone" lay it out.
        """
        from unpooled.results.report.sheet import write_sheet

        return write_sheet(path, self.sheet(layout))


def _checked(layout: str) -> Layout:
    for layout_ in LAYOUTS:
        if layout == layout_:
            return layout_  # type: ignore[return-value]
    raise InputError(f"layout must be {', '.join(LAYOUTS[:-1])} or {LAYOUTS[-1]}, got {layout!r}")


class _Writer:
    """Turns rows into cells, and gathers footnotes in the order in which they are needed."""

    def __init__(self, table: Table1Result, layout: Layout) -> None:
        self._table, self._layout = table, layout
        self._notes: dict[str, str] = {}
        self._rows: list[tuple[str, ...]] = []
        self._indented: list[bool] = []
        self._columns = list(table.n)
        self._with_p = any(row.log10_p is not None for row in table.rows)
        self._with_smd = layout != "gtsummary" and any(row.smd is not None for row in table.rows)

    def sheet(self) -> Sheet:
        people = self._table.n
        if self._layout == "tableone":
            header = ["", *self._columns]
            self._add("n", [f"{n:,}" for n in people.values()])
        else:
            header = ["Characteristic", *(f"{name}, N = {n:,}" for name, n in people.items())]
        header += ["p-value"] if self._with_p else []
        header += ["SMD"] if self._with_smd else []
        for row in self._table.rows:
            (self._number if row.kind == "number" else self._category)(row)
        for row in self._table.rows:
            for note in row.notes:
                self._mark(f"{row.label}: {note}")
        marked = [(mark, text) for text, mark in self._notes.items()]
        folds = fold_notes(self._table.record.notes)
        unmarked = [("", fold.text) for fold in folds]
        footnotes = (*marked, *unmarked)
        title = self._table.title
        return Sheet(title, tuple(header), tuple(self._rows), tuple(self._indented), footnotes)

    def _mark(self, text: str) -> str:
        if text not in self._notes:
            place = len(self._notes)
            letter = _MARKS[place % len(_MARKS)]
            self._notes[text] = letter * (1 + place // len(_MARKS))
        return self._notes[text]

    def _add(self, first: str, cells: Sequence[str], row: Table1Row | None = None) -> None:
        """A line; one that is given its variable has the test and the difference too."""
        more: list[str] = []
        if self._with_p:
            more.append("" if row is None else self._p_cell(row))
        if self._with_smd:
            more.append("" if row is None or row.smd is None else f"{row.smd:.3f}")
        self._rows.append((first, *cells, *more))
        self._indented.append(False)

    def _below(self, first: str, cells: Sequence[str]) -> None:
        self._add(first, cells)
        self._indented[-1] = True

    def _p_cell(self, row: Table1Row) -> str:
        notes = [self._mark(f"{row.label}: {note}") for note in row.notes]
        if row.log10_p is None:
            return " ".join(["–", *notes])
        text = p_text(row.log10_p).removeprefix("= ")
        short = "<0.001" if row.log10_p < -3 else text
        test = [] if row.test is None else [self._mark(row.test)]
        return " ".join([short, ",".join([*test, *notes])]).rstrip()

    def _number(self, row: Table1Row) -> None:
        means = [_mean_cell(numbers) for numbers in row.numbers]
        medians = [_median_cell(numbers, self._layout) for numbers in row.numbers]
        match self._layout:
            case "gtsummary":
                self._add(f"{row.name} {self._mark('Median (Q1, Q3); n (%)')}", medians, row)
            case "tableone":
                self._add(f"{row.name} (mean (SD))", means, row)
            case "full":
                self._add(row.name, [""] * len(self._columns), row)
                self._below("mean (SD)", means)
                self._below("median [Q1, Q3]", medians)
        self._missing(row)

    def _category(self, row: Table1Row) -> None:
        suffix = {"gtsummary": "", "tableone": " (%)", "full": ", n (%)"}[self._layout]
        if self._layout == "gtsummary":
            suffix = f" {self._mark('Median (Q1, Q3); n (%)')}"
        self._add(f"{row.name}{suffix}", [""] * len(self._columns), row)
        for level, cells in row.levels:
            self._below(level, [self._level_cell(cell) for cell in cells])
        self._missing(row)

    def _level_cell(self, cell: LevelCell) -> str:
        n, percent = count_cell(cell.low, cell.high, cell.people)
        if self._layout == "tableone":
            return f"{n} ({percent})"
        return f"{n} ({percent}%)"

    def _missing(self, row: Table1Row) -> None:
        more = row.missing_more or (False,) * len(row.missing)
        if not any(row.missing) and not any(more):
            return
        name = {"gtsummary": "Unknown", "tableone": "missing", "full": "missing"}[self._layout]
        hidden = (
            "fewer than K people without a value at a center are not counted as missing: "
            "each counts with the value of somebody alike"
        )
        mark = f" {self._mark(hidden)}" if None in row.missing or any(more) else ""
        self._below(f"{name}{mark}", list(map(_missing_cell, row.missing, more)))


def _missing_cell(n: int | None, more: bool) -> str:
    return "few" if n is None else f"≥ {n:,}" if more else f"{n:,}"


def _mean_cell(numbers: Numbers) -> str:
    if numbers.mean is None:
        return "–"
    digits = _digits(numbers)
    return (
        f"{numbers.mean:,.{digits}f} ({'–' if numbers.sd is None else f'{numbers.sd:,.{digits}f}'})"
    )


def _median_cell(numbers: Numbers, layout: Layout) -> str:
    if numbers.median is None:
        return "–"
    median, low, high = (number(value, 3) for value in (numbers.median, numbers.q1, numbers.q3))
    return f"{median} ({low}, {high})" if layout == "gtsummary" else f"{median} [{low}, {high}]"


def _digits(numbers: Numbers) -> int:
    """Digits after the point: two of the SD's, at most three, none where it is large."""
    spread = abs(numbers.sd or numbers.mean or 1.0)
    return 0 if spread >= 100 else 1 if spread >= 3 else 2 if spread >= 0.3 else 3
