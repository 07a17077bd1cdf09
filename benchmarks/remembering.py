"""How long one more question takes to judge, at a million people and after forty questions.

The earlier questions are conditions and groupings over a handful of variables, as people ask them;
all of them could be told. Timed beside the answer itself: reading and
sorting the values.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle, product

import numpy as np
import polars as pl

from benchmarks.side_by_side import Row, side_by_side
from unpooled.center.cohort.words import condition
from unpooled.center.data.sources import Source, open_source
from unpooled.center.questions import Disclosure
from unpooled.center.rule.disclosure import Told, TooClose
from unpooled.center.rule.memory import Draft
from unpooled.maths.arrays import BoolArray

PEOPLE, EARLIER, BINS = 1_000_000, 40, 1000  # a thousand earlier ones take too long yet


def rows() -> Iterator[Row]:
    """Whole sets and tables, before and after forty questions."""
    source = open_source(_frame())
    fresh = _with_table(source)
    later, answered = _with_earlier(fresh, source)
    new = cycle([np.random.default_rng(9 + i).random(PEOPLE) < 0.3 for i in range(3)])
    for name, draft in (("a table", fresh), (f"a table and {EARLIER:,} questions", later)):
        ratio = side_by_side(
            lambda draft=draft: _ask(draft, "new > 1", next(new)),  # type: ignore[misc]
            lambda: np.sort(source.values("crp")),
            5,
        )
        yield Row(
            "remembering", f"judge a set of {PEOPLE:,} people after {name} / read and sort", ratio
        )
    answer = later.variables["crp"]
    print(
        f"remembered: {answered} of {EARLIER:,} answered, {len(answer.elements)} disclosures, "
        f"{len(answer.count):,} atoms, {_megabytes(later):.0f} MB"
    )


def _frame() -> pl.DataFrame:
    random = np.random.default_rng(1)
    return pl.DataFrame(
        {
            "crp": random.gamma(4, 1, PEOPLE),
            "sex": random.integers(0, 2, PEOPLE),
            "arm": random.integers(0, 2, PEOPLE),
            "ward": random.integers(0, 12, PEOPLE),
            "age": random.integers(20, 90, PEOPLE),
        }
    )


def _ask(draft: Draft, where: str | None, people: BoolArray) -> Draft | None:
    """What is told with the size of one more set; None where it is refused."""
    with suppress(TooClose):
        return draft.choose((None, None, "all"), condition(where), people, 1)
    return None


def _with_table(source: Source) -> Draft:
    everybody = np.ones(PEOPLE, dtype=bool)
    draft = _ask(Draft(PEOPLE, Told.nothing(PEOPLE, 10)), None, everybody)
    assert draft is not None
    values = source.values("crp")
    edges = np.quantile(values, np.arange(1, BINS) / BINS)
    cell = np.searchsorted(edges, values).astype(np.int32) + 1
    table = Disclosure(cell, (None,) * BINS, {"crp": (1,) * BINS}, tuple(edges.tolist()))
    return draft.tell(table, 1, lambda: values)


def _with_earlier(draft: Draft, source: Source) -> tuple[Draft, int]:
    """Forty conditions more, and how many of them are answered."""
    column = {name: source.values(name) for name in ("sex", "arm", "ward", "age")}
    wards, ages = [*range(12), None], [*range(25, 64), None]
    answered = 0
    choices = list(product((0, 1, None), (0, 1, None), wards, ages))
    for i in np.random.default_rng(2).permutation(len(choices))[:EARLIER].tolist():
        chosen = dict(zip(column, choices[i], strict=True))
        people = np.ones(PEOPLE, dtype=bool)
        for name, value in chosen.items():
            if value is not None:
                people &= column[name] >= value if name == "age" else column[name] == value
        where = " and ".join(
            f"{name} {'>=' if name == 'age' else '=='} {value}"
            for name, value in chosen.items()
            if value is not None
        )
        more = _ask(draft, where or None, people)
        if more is not None:
            draft, answered = more, answered + 1
    return draft, answered


def _megabytes(draft: Draft) -> float:
    lists = draft.words, *draft.variables.values()
    size = sum(each.of.nbytes + each.count.nbytes + each.crowd.nbytes for each in lists)
    size += sum(element.part.nbytes for each in lists for element in each.elements)
    return (size + sum(len(each.people) for each in draft.sets)) / 1e6
