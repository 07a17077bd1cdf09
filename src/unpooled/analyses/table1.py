"""Table 1: the analyses of every variable, put into one table.

It asks nothing by itself: a federation or a book describes, compares and counts each variable.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from unpooled.errors import InputError, MissingError, RefusedError
from unpooled.maths.categories.standardised import category_differences, mean_differences
from unpooled.maths.density.heaps import are_at_tens, heaps
from unpooled.maths.moments import MeanSD, pool
from unpooled.results.crosstab import SMALL_EXPECTED, CrosstabResult
from unpooled.results.numbers.compare import CompareResult
from unpooled.results.numbers.describe import DescribeResult, GroupDescription
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.quantiles import QuantilesResult
from unpooled.results.provenance.record import Note, OfVariables, Record
from unpooled.results.provenance.refusals import CenterRefusal, refusals_of
from unpooled.results.report.text import people_text
from unpooled.results.table1 import OVERALL, Layout, LevelCell, Numbers, Table1Result, Table1Row

Quartiles = tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class VariableRow:
    """A row of the table, and the results that it comes from."""

    row: Table1Row
    people: dict[str, int]  # of each group
    centers: tuple[str, ...]
    records: tuple[Record, ...]
    refusals: tuple[CenterRefusal, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """How a variable is called in the table."""

    variable: str
    label: str
    unit: str | None = None


def number_row(
    shown: Shown,
    described: DescribeResult,
    quartiles: Callable[[str | None], Quartiles],
    compared: CompareResult | None,
    noticed: Sequence[str] = (),
) -> VariableRow:
    """The row of a number; `quartiles` of None are those of all groups together."""
    groups = described.groups
    notes = [*_without_mean(described), *noticed]
    columns = [_everybody(groups), *groups] if described.by is not None else [_everybody(groups)]
    numbers = tuple(
        Numbers(
            name,
            numbers_of.n,
            _missing(numbers_of),
            numbers_of.mean,
            numbers_of.sd,
            *_ordered(quartiles(None if name == OVERALL else name)),
        )
        for name, numbers_of in zip([OVERALL, *(g.group for g in groups)], columns, strict=False)
    )
    several = described.by is not None and len(groups) > 1
    means = [g.mean for g in groups if g.mean is not None and g.sd is not None]
    sds = [g.sd for g in groups if g.mean is not None and g.sd is not None]
    smd = mean_differences(means, sds).largest if several and len(sds) == len(groups) else None
    row = Table1Row(
        shown.variable,
        "number",
        shown.label,
        shown.unit,
        numbers=numbers,
        missing=tuple(numbers_of.missing for numbers_of in numbers),
        missing_more=tuple(column.missing_hidden > 0 for column in columns),
        test=None if compared is None else _rank_test(compared),
        log10_p=None if compared is None else compared.log10_p,
        smd=smd,
        notes=tuple(notes),
    )
    records = (described.record, *(() if compared is None else (compared.record,)))
    refused = (*described.refusals, *(() if compared is None else compared.refusals))
    centers = tuple(dict.fromkeys(c.center for c in described.centers))
    people = {g.group: g.n + (_missing(g) or 0) for g in groups}
    return VariableRow(row, people, centers, records, refused)


def _without_mean(described: DescribeResult) -> list[str]:
    """The centers without which the mean of a group is."""
    notes = []
    for group in described.groups:
        centers = [one for one in described.centers if one.group == group.group]
        without = [one for one in centers if one.mean is None or one.sd is None]
        if group.sd is None or not without:
            continue
        names = ", ".join(dict.fromkeys(one.center for one in without))
        of_group = "" if described.by is None else f" of {group.group}"
        notes.append(
            f"mean and SD{of_group} without {names} ({people_text(sum(c.n for c in without))}), "
            "where they are withheld"
        )
    return notes


_CODES = (-1.0, -9.0, -99.0, -999.0, 9.0, 99.0, 999.0, 9999.0)  # that often mean missing
_MOST_HEAPS = 4


def heap_notes(shared: Mapping[str, Mapping[float, float]], *, at_tens: bool) -> list[str]:
    """What is noticed of values that many people share, at a center or in a group.

    Examples
    --------
    >>> heap_notes({"Bern": {0.0: 37}, "Oslo": {0.0: 12}}, at_tens=False)
    ['people have 0 (Bern: 37 or more, Oslo: 12 or more): a value, or a code for missing?']
    """
    by_value: dict[float, dict[str, float]] = {}
    for where, values in shared.items():
        for value, people in values.items():
            by_value.setdefault(value, {})[where] = people
    each = [
        (
            value,
            f"{value:g} ({', '.join(f'{where}: {n:,.0f} or more' for where, n in people.items())})",
        )
        for value, people in sorted(by_value.items(), key=lambda one: -sum(one[1].values()))
    ]
    notes = [
        f"people have {text}: a value, or a code for missing?"
        for value, text in each
        if value in (0.0, *_CODES)
    ]
    others = [text for value, text in each if value not in (0.0, *_CODES)][:_MOST_HEAPS]
    if others:
        notes.append(f"many people share {'; '.join(others)}")
    if at_tens:
        notes.append("values are heaped at multiples of ten: quartiles may be off by some units")
    return notes


def noticed_in(estimates: QuantilesResult) -> list[str]:
    """The same of quantiles that centers were asked for."""
    smooth = () if estimates.distribution is None else estimates.distribution.distributions
    shared, at_tens = {}, False
    for one in smooth:
        placed, lattice = one.distribution.placed, one.distribution.lattice
        values, place = np.unique(placed.values[placed.shared], return_inverse=True)
        people = np.bincount(place, placed.weights[placed.shared], len(values))
        atoms = dict(zip(values.tolist(), people.tolist(), strict=True))
        shared[one.group] = heaps(atoms, placed, lattice.resolution)
        at_tens |= are_at_tens(one.edges, lattice)
    return heap_notes(shared, at_tens=at_tens)


def quartiles(estimates: QuantilesResult, group: str | None) -> Quartiles:
    """The quartiles of a group, or of all groups together: of the mixture of their curves."""
    smooth = estimates.distribution
    if group is not None or smooth is None or len(smooth.distributions) < 2:
        estimated = [q.estimate for q in estimates.quantiles if group in (None, q.group)]
        return (
            (estimated[0], estimated[1], estimated[2])
            if len(estimated) == 3
            else (None, None, None)
        )
    curves = [result.distribution for result in smooth.distributions]
    people = sum(curve.people for curve in curves)
    levels = np.array([0.25, 0.5, 0.75])
    ends = np.array([curve.quantile(levels) for curve in curves])
    low, high = ends.min(axis=0), ends.max(axis=0)
    for _ in range(40):
        tried = (low + high) / 2
        reached = np.sum([curve.people * curve.cdf(tried) for curve in curves], axis=0)
        below = reached < levels * people
        low, high = np.where(below, tried, low), np.where(below, high, tried)
    q1, median, q3 = high.tolist()
    return q1, median, q3


_FEW = 6  # different values, at most, of a category of whole numbers


def has_few_values(smooth: DistributionResult | None) -> bool:
    """Whether everybody has one of a few whole numbers, such as 0 and 1."""
    if smooth is None:
        return False
    values: set[float] = set()
    for result in smooth.distributions:
        placed = result.distribution.placed
        values.update(np.unique(placed.values).tolist())
        if not placed.shared.all() or len(values) > _FEW:
            return False
    return all(value.is_integer() for value in values)


def _ordered(quartiles_of: Quartiles) -> Quartiles:
    """Median first, as the columns have it."""
    q1, median, q3 = quartiles_of
    return median, q1, q3


def _missing(description: GroupDescription) -> int | None:
    """None where fewer than K people of some center may have no value, and nobody more."""
    return None if description.missing_hidden and not description.missing else description.missing


def _everybody(groups: Sequence[GroupDescription]) -> GroupDescription:
    parts = [MeanSD(g.n, g.mean, g.sd) for g in groups if g.mean is not None and g.sd is not None]
    whole = pool(parts) if len(parts) == len(groups) and len(parts) > 1 else None
    only = groups[0] if len(groups) == 1 else None
    return GroupDescription(
        OVERALL,
        sum(g.n for g in groups),
        sum(g.missing for g in groups),
        max(g.missing_hidden for g in groups),
        whole.mean if whole is not None else None if only is None else only.mean,
        whole.sd if whole is not None else None if only is None else only.sd,
    )


def _rank_test(compared: CompareResult) -> str:
    where = "within centers" if len(compared.centers) > 1 else "in one center"
    name = "Mann-Whitney test" if compared.of_two else "Kruskal-Wallis test"
    stratified = " (van Elteren)" if compared.of_two and len(compared.centers) > 1 else ""
    return f"{name} {where}{stratified}"


def category_row(shown: Shown, crosstab: CrosstabResult, notes: Sequence[str] = ()) -> VariableRow:
    """The row of a category: a line a level, with bounds where a center merged some."""
    bounds, several = crosstab.bounds, len(crosstab.groups) > 1
    people = {g: round(n) for g, n in zip(crosstab.groups, bounds.people.tolist(), strict=True)}
    everybody = sum(people.values())
    levels = []
    for place, level in enumerate(crosstab.levels):
        low, high = bounds.low[:, place], bounds.high[:, place]
        cells = [LevelCell(OVERALL, round(low.sum()), round(high.sum()), everybody)]
        if crosstab.by:
            cells += [
                LevelCell(group, round(low[i]), round(high[i]), people[group])
                for i, group in enumerate(crosstab.groups)
            ]
        levels.append((level, tuple(cells)))
    missing = [n for _, n in crosstab.missing]
    whole = None if None in missing else sum(n for n in missing if n is not None)
    test, log10_p = _category_test(crosstab) if several else (None, None)
    row = Table1Row(
        shown.variable,
        "category",
        shown.label,
        shown.unit,
        levels=tuple(levels),
        missing=(whole, *(missing if crosstab.by else ())),
        test=test,
        log10_p=log10_p,
        smd=category_differences(crosstab.estimated).largest if several else None,
        notes=(*notes, *crosstab.notes()),
    )
    centers = tuple(dict.fromkeys(c.center for c in crosstab.centers))
    return VariableRow(row, people, centers, (crosstab.record,), crosstab.refusals)


def _category_test(crosstab: CrosstabResult) -> tuple[str | None, float | None]:
    """Within centers; the exact test of everybody where few are expected and it is one center."""
    rare = crosstab.expected is not None and crosstab.expected < SMALL_EXPECTED
    if crosstab.cmh is not None and crosstab.cmh.df and not (rare and crosstab.exact is not None):
        return "Cochran-Mantel-Haenszel test within centers", crosstab.cmh.log10_p
    if rare and crosstab.exact is not None:
        return "Fisher's exact test", crosstab.exact.log10_p
    if crosstab.chi2 is not None and crosstab.chi2.df:
        return "chi-square test", crosstab.chi2.log10_p
    return None, None


def table_of(
    variables: Sequence[str],
    row_of: Callable[[str], VariableRow],
    by: str | None,
    where: str | None,
    layout: Layout,
) -> Table1Result:
    """Every variable's row; one that fails is left out, with the reason."""
    if not variables:
        raise InputError("name at least one variable, got none")
    if len(set(variables)) < len(variables):
        raise InputError(f"variables must differ, got {', '.join(variables)}")
    shown_rows: list[VariableRow] = []
    left_out: list[tuple[str, str]] = []
    for variable in variables:
        try:
            shown_rows.append(row_of(variable))
        except MissingError:  # it is missing for every variable
            raise
        except (InputError, RefusedError) as error:
            left_out.append((variable, str(error).splitlines()[0]))
    if not shown_rows:
        raise InputError("\n".join(f"{name}: {why}" for name, why in left_out))
    groups = tuple(dict.fromkeys(g for each in shown_rows for g in each.people)) if by else ()
    most = {
        g: max(each.people.get(g, 0) for each in shown_rows)
        for each in shown_rows
        for g in each.people
    }
    n = {OVERALL: sum(most.values()), **({g: most[g] for g in groups} if by else {})}
    return Table1Result(
        by=by,
        where=where,
        groups=groups,
        n=n,
        rows=tuple(each.row for each in shown_rows),
        centers=tuple(dict.fromkeys(center for each in shown_rows for center in each.centers)),
        refusals=refusals_of((each.row.variable, each.refusals) for each in shown_rows),
        left_out=tuple(left_out),
        layout=layout,
        record=_together(shown_rows),
    )


def _together(rows: Sequence[VariableRow]) -> Record:
    """The first record, with everybody's notes and releases."""
    from unpooled.results.provenance.releases import Releases

    records = [record for each in rows for record in each.records]
    received = {id(one): one for record in records for one in record.releases}
    nearest = dict.fromkeys(near for record in records for near in record.nearest)
    return replace(
        records[0],
        releases=Releases(tuple(received.values())),
        nearest=tuple(nearest),
        merged=_named(rows),
    )


def _named(rows: Sequence[VariableRow]) -> tuple[Note, ...]:
    """What is to be said of people: of every variable alike, or of which variables."""
    of_row = [
        (row.row.label, tuple(dict.fromkeys(note for one in row.records for note in one.merged)))
        for row in rows
    ]
    shared = [note for note in of_row[0][1] if all(note in notes for _, notes in of_row)]
    if len(rows) < 2:
        return tuple(shared)
    kinds: dict[type, dict[str, list[Note]]] = {}
    for label, notes in of_row:
        for note in notes:
            if note not in shared:
                kinds.setdefault(type(note), {}).setdefault(label, []).append(note)
    return (
        *shared,
        *(
            OfVariables(kind, tuple((label, tuple(notes)) for label, notes in of.items()))  # type: ignore[arg-type]
            for kind, of in kinds.items()
        ),
    )
