"""How long one more question takes to judge, at a million people and after a thousand questions.

The earlier questions are conditions and groupings over a handful of variables, as people ask them;
most of them could not be told, or followed from others. Timed beside the answer itself: reading and
sorting the values.
"""

import gc
from collections.abc import Iterator
from itertools import product

import numpy as np
import polars as pl

from benchmarks.side_by_side import Row, side_by_side
from unpooled.center.cohort import units_of
from unpooled.center.keys import CenterKey
from unpooled.center.ledger import Ledger
from unpooled.center.memory.memory import Memory
from unpooled.center.memory.memory_file import MemoryFile
from unpooled.center.memory.proposal import Group, Proposal
from unpooled.center.memory.tables import Cells
from unpooled.center.memory.units import Members
from unpooled.center.policy import Policy
from unpooled.data.sources import Source, open_source
from unpooled.maths.arrays import BoolArray, IntArray
from unpooled.questions import CohortQuestion, SizesQuestion, TableQuestion

PEOPLE, EARLIER, BINS = 1_000_000, 1000, 1000


def rows() -> Iterator[Row]:
    """Whole sets and tables, before and after a thousand questions."""
    source = open_source(_frame())
    memory = _memory(source)
    fresh = _memory(source)
    _tell_table(fresh, source)
    answered = _tell_earlier(memory, source)
    new = np.random.default_rng(9).random(PEOPLE) < 0.3
    for name, state in (("a table", fresh), (f"a table and {EARLIER:,} questions", memory)):
        ratio = side_by_side(
            lambda state=state: _ask(state, source, "new > 1", new),  # type: ignore[misc]
            lambda: np.sort(source.values("crp")),
            5,
        )
        yield Row(
            "remembering", f"judge a set of {PEOPLE:,} people after {name} / read and sort", ratio
        )
    history = memory._variables["crp"].history
    print(
        f"remembered: {answered} of {EARLIER:,} answered, {len(history.crossings)} crossing sets, "
        f"{len(history.atoms.count):,} atoms, {_megabytes(memory):.0f} MB"
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


def _memory(source: Source) -> Memory:
    ledger = Ledger("Haifa", CenterKey.from_seed(1, "Haifa"))
    return Memory(10, MemoryFile("Haifa", None, ledger), source)


def _propose(
    memory: Memory, source: Source, question: CohortQuestion, people: BoolArray | IntArray
) -> Proposal:
    members = Members(np.flatnonzero(people))
    group = Group("all", members, Members(members.keys[:0]))
    table = 10 if isinstance(question, TableQuestion) else None
    units = units_of(source, Policy())
    return memory.propose(question, 10, units, [group], table=table)


def _ask(memory: Memory, source: Source, where: str | None, people: BoolArray) -> Proposal:
    return _propose(memory, source, SizesQuestion(variable="crp", where=where), people)


def _tell_table(memory: Memory, source: Source) -> None:
    everybody = np.ones(PEOPLE, dtype=bool)
    memory.remember(_ask(memory, source, None, everybody))
    proposal = _propose(memory, source, TableQuestion(variable="crp"), everybody)
    edges = np.quantile(source.values("crp"), np.arange(1, BINS) / BINS)
    memory.remember(proposal.with_tables({"all": [Cells(edges)]}))


def _tell_earlier(memory: Memory, source: Source) -> int:
    """The table, then a thousand conditions; how many of them are answered."""
    _tell_table(memory, source)
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
        proposal = _ask(memory, source, where or None, people)
        if not proposal.withheld:
            memory.remember(proposal)
            answered += 1
    return answered


def _megabytes(memory: Memory) -> float:
    gc.collect()
    known = memory._variables["crp"]
    history, atoms = known.history, known.history.atoms
    size = history.block.nbytes + history.cell.nbytes + atoms.of.nbytes + atoms.sets.nbytes
    return (size + sum(crossing.people.nbytes for crossing in history.crossings)) / 1e6
