"""The program of the keepers: what comes out equals the rule on pooled rows."""

import asyncio
import dataclasses
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from scipy import stats

from tests.joint.keepers import (
    PATIENT,
    Halt,
    carried_outputs,
    keeper_inputs,
    keepers,
    numbers_alone,
    output,
    outputs,
)
from tests.joint.pooled import (
    ARM,
    CRP,
    FAR,
    MONTHS,
    ROUGH,
    SITE,
    STAGE,
    People,
    expected,
    people,
    people_of,
    populations,
)
from unpooled.center.questions import CellTable
from unpooled.center.questions.joint import (
    MOST_POINTS,
    JointCategory,
    JointNumber,
    JointOutcome,
    JointPlan,
)
from unpooled.errors import JointError
from unpooled.federation.joint.computation.program import (
    CellMoments,
    JointMoments,
    JointNumbers,
    PartNumbers,
    cell_scale,
    part_weights,
    scale_steps,
)
from unpooled.federation.joint.computation.secure import Opened
from unpooled.federation.joint.keepers.channel import SealedChannel
from unpooled.maths.joint.cutting import JointCells
from unpooled.maths.joint.levels import fine_blocks, with_levels
from unpooled.maths.joint.moments import (
    CellSteps,
    MeanSteps,
    SDSteps,
    Steps,
    next_step,
    next_steps,
)

K = st.integers(3, 20)


@settings(max_examples=12, deadline=None)
@given(populations(K))
def test_shares_give_what_the_rule_gives_on_pooled_rows(part: People) -> None:
    assert numbers_alone(part) == expected(part)


@settings(max_examples=12, deadline=None)
@given(populations(K))
def test_somebody_with_the_release_alone_can_say_what_was_opened(part: People) -> None:
    opened = Opened()
    numbers = numbers_alone(part, opened)
    assert opened.numbers == list(simulated(part.plan, numbers))


def test_the_people_of_the_summed_shares_are_those_of_all_members() -> None:
    plan = JointPlan(k=5, groupings=(ARM,), parts=(FAR, STAGE, MONTHS))
    part = people(np.random.default_rng(5), plan, 4, 12.0)
    assert expected(people_of(plan, np.sum(list(part.vectors()), axis=0))) == expected(part)


def test_cells_tell_means_and_sds_where_people_are_at_points_enough() -> None:
    plan = JointPlan(k=20, groupings=(), parts=(FAR,))
    rng = np.random.default_rng(1)
    part = people(rng, plan, 3, 0.0)
    spread = np.exp(-(((np.arange(FAR.width) - 80) / 40) ** 2))
    counts = rng.multinomial(130, spread / spread.sum(), size=(3, 1, 1))
    sizes = counts.sum(axis=(2, 3))
    part = dataclasses.replace(part, counts=[counts], lacking=[0 * counts], sizes=sizes)
    numbers = numbers_alone(part)
    assert numbers is not None
    assert numbers == expected(part)
    table, moments = numbers.parts[0].tables[0], numbers.parts[0].cells[0]
    assert table is not None
    assert moments is not None
    values = np.repeat(part_weights(FAR).values, counts.sum(axis=0)[0, 0])
    edges = FAR.edges[list(table.edges)]
    cells = np.searchsorted(edges, values)
    assert sum(sd is not None for sd in moments.sds) >= 4
    for cell in range(1, len(edges)):  # those that are not open have means of x itself
        some = values[cells == cell]
        mean, sd = moments.means[cell], moments.sds[cell]
        error = some.std() / len(some) ** 0.5
        assert mean is not None
        assert mean == pytest.approx(some.mean(), abs=error / 5)
        assert sd is None or sd == pytest.approx(some.std(), rel=0.05)
    told_table = CellTable(
        edges=tuple(edges.tolist()), counts=table.counts, means=moments.means, sds=moments.sds
    )
    told_table.check(FAR.lattice, "all", 20, 40)  # as every center's table is


@pytest.mark.parametrize(
    ("resolution", "high"), [(None, 100.0), (0.1, 120.0), (None, 1.0), (1.0, 10_000.0)]
)
def test_people_are_at_the_same_points_of_a_coarser_lattice_as_if_counted_there(
    resolution: float | None, high: float
) -> None:
    width = 10.0 ** np.ceil(np.log10(10 * high / MOST_POINTS))
    fine = replace(ROUGH, scale=width, resolution=resolution, upper=high, high=high)
    values = np.random.default_rng(1).uniform(0, high, 2000)
    if resolution:
        values = np.round(values / resolution) * resolution
    values = np.concatenate((values, [0.0, high]))
    assert len(fine.scales) >= 4
    for scale in fine.scales:
        there = np.searchsorted(fine.at_scale(scale).edges, values)
        here = np.searchsorted(fine.edges, values)
        assert np.array_equal(fine.coarser(scale)[here], there)


def test_means_are_told_where_no_person_stands_out() -> None:
    plan = JointPlan(k=5, groupings=(), parts=(CRP,))
    rng = np.random.default_rng(1)
    part = people(rng, plan, 3, 1.0)
    counts = np.zeros_like(part.counts[0])
    counts[:, 0, 0, 3:20] = 1
    outcomes = []
    for far, heaps in ((0, 0), (1, 0), (0, 1)):
        some = counts.copy()
        if heaps:
            some[:, 0, 0, 10:] = 0  # seven points are left
        some[0, 0, 0, -1] += far
        plan_of = replace(plan, parts=(replace(CRP, high=500.0, upper=500.0),)) if far else plan
        if far:  # one person at 500, all others below 20
            wide = np.zeros((3, 1, 1, plan_of.parts[0].width), dtype=np.int64)
            wide[..., : some.shape[-1] - 1] = some[..., :-1]
            wide[0, 0, 0, -1] = 1
            some = wide
        zeros = np.zeros_like(some)
        secrets = zeros[0], zeros[0]
        sizes = some.sum(axis=(2, 3))
        each = People(plan_of, sizes, [some], [zeros], [secrets[0]], [secrets[1]])
        numbers = numbers_alone(each)
        assert numbers == expected(each)
        assert numbers is not None
        outcomes.append(numbers.parts[0].moments[0])
    assert outcomes == [JointMoments(mean=11.0, sd=4.95), None, None]


def test_three_keepers_in_processes_of_their_own_open_the_same() -> None:
    plan = JointPlan(k=5, groupings=(ARM,), parts=(CRP, STAGE, SITE, MONTHS))
    part = people(np.random.default_rng(5), plan, 4, 12.0)
    opened = Opened()
    alone = numbers_alone(part, opened)
    together = outputs(keeper_inputs(part))
    assert alone == expected(part)
    assert alone is not None
    for each in together:
        assert each.problem is None
        assert each.numbers == alone
        assert each.opened == tuple(opened.numbers)


def test_keepers_whose_messages_are_carried_open_the_same() -> None:
    plan = JointPlan(k=5, groupings=(ARM,), parts=(CRP, SITE))
    part = people(np.random.default_rng(5), plan, 4, 12.0)
    for each in carried_outputs(keeper_inputs(part)):
        assert each.problem is None
        assert each.numbers == expected(part)


def test_who_carries_messages_can_neither_read_nor_change_them() -> None:
    plan = JointPlan(k=5, groupings=(), parts=(SITE,))
    part = people(np.random.default_rng(5), plan, 3, 9.0)
    seen, first = list[bytes](), threading.Lock()

    def change(sender: int, receiver: int, message: bytes) -> bytes:
        seen.append(message)
        if len(message) > 100 and first.acquire(blocking=False):  # greetings are shorter
            return message[:-1] + bytes([message[-1] ^ 1])
        return message

    outputs = carried_outputs(keeper_inputs(part), change)
    assert {each.numbers for each in outputs} == {None}
    assert {each.names for each in outputs} <= {("Bern",), ("Haifa",), ("Oslo",)}
    sealed = np.frombuffer(b"".join(one for one in seen if len(one) > 100), np.uint8)
    assert stats.chisquare(np.bincount(sealed, minlength=256)).pvalue > 1e-9


def test_a_keeper_that_does_not_come_is_named_and_nothing_is_opened() -> None:
    plan = JointPlan(k=5, groupings=(), parts=(SITE,))
    inputs = keeper_inputs(people(np.random.default_rng(5), plan, 3, 9.0), patience=3.0)
    for each in outputs(inputs[:2]):
        assert each.numbers is None
        assert each.opened == ()
        assert each.problem == "not reached in 3 s: keeper Oslo"


def test_counts_that_do_not_add_up_end_the_run() -> None:
    plan = JointPlan(k=5, groupings=(), parts=(SITE,))
    inputs = keeper_inputs(people(np.random.default_rng(5), plan, 3, 9.0))
    wrong = [msgspec.structs.replace(one, shares=_more(one.shares)) for one in inputs]
    for each in outputs(wrong):
        assert each.numbers is None
        assert each.problem == "the people of a block do not add up"


def test_a_keeper_that_is_killed_in_the_middle_is_named_and_a_second_run_works() -> None:
    plan = JointPlan(k=5, groupings=(ARM,), parts=(CRP, MONTHS))
    part = people(np.random.default_rng(5), plan, 4, 30.0)
    inputs = keeper_inputs(part)
    addresses = inputs[0].addresses
    assert addresses is not None
    halt = Halt(addresses[2], after=100_000)  # a third of what it gets
    around = [
        replace(one, addresses=(*addresses[:2], halt.address)) if place < 2 else one
        for place, one in enumerate(inputs)
    ]
    with keepers(around) as processes:
        try:
            assert halt.reached.wait(PATIENT)
            processes[2].kill()
        finally:
            halt.close()
        for process in processes[:2]:
            lost = output(process)
            assert lost.numbers is None
            assert lost.names == ("Oslo",)
            assert lost.problem == "the keeper Oslo is gone"
            assert lost.begun
    again = outputs(keeper_inputs(part))
    assert {each.problem for each in again} == {None}
    assert again[0].numbers == expected(part)


def _more(shares: bytes) -> bytes:
    """One person more in the first block, in every share alike."""
    first = int.from_bytes(shares[:16], "little") + 1
    return first.to_bytes(16, "little") + shares[16:]


# --- a simulator --------------------------------------------------------------------------------


def simulated(plan: JointPlan, numbers: JointNumbers | None) -> Iterator[int]:
    """The opened numbers, computed by somebody who has the release and nothing else."""
    yield int(numbers is not None)
    if numbers is None:
        return
    fine = fine_blocks([len(names) for names in plan.names])
    blocks = [np.array(block) for block in numbers.blocks]
    used = [len(names) for names in plan.names]
    some_rows = fine[[row for block in numbers.blocks for row in block]]
    for at in np.flatnonzero(plan.others).tolist():
        has_some = bool((some_rows[:, at] == used[at] - 1).any())
        yield int(has_some)
        used[at] -= 1 - has_some
    nodes = [with_levels(fine, used)]
    for at, grouping in enumerate(plan.groupings):
        cells = [
            list(dict.fromkeys(tuple(np.unique(fine[b, at])) for b in blocks if b[0] in node))
            for node in nodes
        ]
        yield from _joined(cells, used[at], ordered=grouping.rises)
        nodes = [
            n[np.isin(fine[n, at], c)] for n, each in zip(nodes, cells, strict=True) for c in each
        ]
    yield from numbers.people
    for part, opened in zip(plan.parts, numbers.parts, strict=True):
        match part:
            case JointNumber():
                yield from _number(plan.k, part, numbers.people, opened)
            case JointOutcome():
                yield from _outcome(plan.k, part, opened)
            case JointCategory():
                yield from _present(opened.missing, opened.levels)
                some = [levels for levels in opened.levels if levels is not None]
                last = part.width - 1
                has_some = any(last in cell for one in some for cell in one.cells)
                if some and part.has_others:
                    yield int(has_some)
                width = part.width - int(part.has_others and not has_some)
                yield from _joined([list(one.cells) for one in some], width, ordered=part.ordered)
                yield from (count for one in some for count in one.counts)


def _joined(cells: Sequence[Sequence[Any]], levels: int, *, ordered: bool) -> Iterator[int]:
    if levels == 1 or not cells:
        return
    if ordered:
        yield from _rising([{cell[-1] for cell in part} for part in cells], levels)
        return
    for level in reversed(range(levels)):
        yield from (int((level,) in part) for part in cells)


def _rising(ends: Sequence[set[int]], levels: int) -> Iterator[int]:
    """Whether each part is cut in its middle; then the other cuts of those that are not."""
    parts, whole = [(row, 0, levels) for row in range(len(ends))], []
    while parts:
        halved = [e - f > 1 and f + (e - f) // 2 - 1 in ends[row] for row, f, e in parts]
        yield from (int(cut) for (_, f, e), cut in zip(parts, halved, strict=True) if e - f > 1)
        whole += [part for part, cut in zip(parts, halved, strict=True) if not cut]
        parts = [
            side
            for (row, f, e), cut in zip(parts, halved, strict=True)
            if cut
            for side in ((row, f, f + (e - f) // 2), (row, f + (e - f) // 2, e))
        ]
    for width in sorted({e - f for _, f, e in whole} - {1}):
        some = [part for part in whole if part[2] - part[1] == width]
        for level in range(width - 1):
            yield from (int(f + level in ends[row]) for row, f, _ in some)


def _present(missing: Sequence[int], some: Sequence[object]) -> Iterator[int]:
    left_out = [int(m > 0) for m in missing]
    yield from (int(m or s is None) for m, s in zip(left_out, some, strict=True))
    yield from left_out
    yield from (m for m in missing if m)


def _number(
    k: int, part: JointNumber, people_of: Sequence[int], opened: PartNumbers
) -> Iterator[int]:
    yield from _present(opened.missing, opened.tables)
    some = [table for table in opened.tables if table is not None]
    if not some:
        return
    if part.rough:
        assert opened.scale is not None
        end = float(part.scales.index(opened.scale))
        yield from _search([scale_steps(part)], [(0, part_weights(part).most)], [end])
        part = part.at_scale(opened.scale)
    yield from _tables(some, part.width, k)
    moments = [
        m for m, table in zip(opened.moments, opened.tables, strict=True) if table is not None
    ]
    yield from (int(m is not None) for m in moments)
    n = [table.people for table in some]
    rows = [row for row, m in enumerate(moments) if m is not None]
    yield from _means(part, moments, rows, n)
    yield from _cells(part, opened.tables, opened.cells)


def _means(
    part: JointNumber,
    moments: Sequence[JointMoments | None],
    rows: Sequence[int],
    n: Sequence[int],
) -> Iterator[int]:
    if not rows:
        return
    weights = part_weights(part)
    limit = (max(n) * weights.most) ** 2
    sds = [moments[row].sd for row in rows]  # type: ignore[union-attr]
    yield from _search([weights.sd(n[row]) for row in rows], [(1, limit)] * len(rows), sds)
    yield from _search(
        [weights.mean(n[row], sd) for row, sd in zip(rows, sds, strict=True)],
        [(0, n[row] * weights.most) for row in rows],
        [moments[row].mean for row in rows],  # type: ignore[union-attr]
    )


def _outcome(k: int, part: JointOutcome, opened: PartNumbers) -> Iterator[int]:
    blocks = len(opened.missing)
    events = opened.tables[:blocks]
    kept = [e or x for e, x in zip(events, opened.either, strict=True)]
    yield from _present(opened.missing, kept)
    below = [b for b, table in zip(opened.below, kept, strict=True) if table is not None]
    yield from (int(b in (None, "censored")) for b in below)
    yield from (int(b in (None, "events")) for b in below)
    pairs = (opened.tables, opened.cells), (opened.either, opened.either_cells)
    for tables, cells in pairs:
        some = [t for t in tables if t is not None]
        if some:
            yield from _tables(some, part.width, k)
            yield from _cells(part, tables, cells)


def _cells(
    part: JointNumber | JointOutcome,
    tables: Sequence[JointCells | None],
    cells: Sequence[CellMoments | None],
) -> Iterator[int]:
    """Whether each cell tells a mean, and an SD; then the searches for these."""
    some = [(t, c) for t, c in zip(tables, cells, strict=True) if t is not None and c is not None]
    scale = cell_scale(part, [t for t, _ in some])
    at = list(zip(scale.table.tolist(), scale.cell.tolist(), strict=True))
    means = [some[table][1].means[cell] for table, cell in at]
    sds = [some[table][1].sds[cell] for table, cell in at]
    yield from (int(mean is not None) for mean in means)
    yield from (int(sds[i] is not None) for i in scale.may_tell_sd.tolist())
    tells_sd = np.array([i for i, sd in enumerate(sds) if sd is not None], dtype=int)
    yield from _cell_search(SDSteps(scale.at(tells_sd)), [sds[i] for i in tells_sd])
    tells = np.array([i for i, mean in enumerate(means) if mean is not None], dtype=int)
    beside = np.array([sds[i] for i in tells], dtype=float)
    yield from _cell_search(MeanSteps(scale.at(tells), beside), [means[i] for i in tells])


def _cell_search(steps: CellSteps, ends: Sequence[float | None]) -> Iterator[int]:
    low, high, end = np.zeros_like(steps.most), steps.most.copy(), np.array(ends, dtype=float)
    while len(rows := np.flatnonzero((low < high) & (steps(low) != steps(high)))):
        asked = next_steps(steps.at(rows), low[rows], high[rows])
        bits = steps.at(rows)(asked) <= end[rows]
        low[rows] = np.where(bits, asked, low[rows])
        high[rows] = np.where(bits, high[rows], asked - 1)
        yield from bits.astype(int).tolist()


def _search(
    steps: Sequence[Steps], limits: Sequence[tuple[int, int]], ends: Sequence[float]
) -> Iterator[int]:
    within = [list(pair) for pair in limits]
    while rows := [i for i, (a, b) in enumerate(within) if a < b and steps[i](a) != steps[i](b)]:
        for i in rows:
            at = next_step(steps[i], *within[i])
            bit = steps[i](at) <= ends[i]
            within[i] = [at, within[i][1]] if bit else [within[i][0], at - 1]
            yield int(bit)


def _tables(some: Sequence[JointCells], points: int, k: int) -> Iterator[int]:
    yield from (1 for _ in some)
    yield from (table.people for table in some)
    levels = [[(-1, points - 1, 0, table.people)] for table in some]
    while any(levels := [[node for node in level if _may(node, k)] for level in levels]):
        edges = []
        for table, level in zip(some, levels, strict=True):
            edges.append([_next(table, left, right) for left, right, *_ in level])
        flat = [
            (n, e)
            for ns, es in zip(levels, edges, strict=True)
            for n, e in zip(ns, es, strict=True)
        ]
        flat.sort(key=lambda one: (one[0][1] - one[0][0] - 1).bit_length())
        yield from (0 if e is None else e[0] - n[0] for n, e in flat)
        yield from (0 if e is None else e[1] for _, e in flat)
        levels = [
            [
                side
                for (left, right, low, high), e in zip(level, part, strict=True)
                if e is not None
                for side in ((left, e[0], low, e[1]), (e[0], right, e[1], high))
            ]
            for level, part in zip(levels, edges, strict=True)
        ]


def _may(node: tuple[int, int, int, int], k: int) -> bool:
    left, right, low, high = node
    return high - low >= 2 * k and right - left >= 2


def _next(table: JointCells, left: int, right: int) -> tuple[int, int] | None:
    """The first edge that was opened inside a cell, with the people below."""
    inside = (split for split in table.splits if left < split.point < right)
    return next(((split.point, split.below) for split in inside), None)


def test_a_keeper_that_ends_since_it_lost_another_is_not_blamed() -> None:
    async def blamed(*, says: bool) -> tuple[str, ...]:
        arriving: list[bytes] = []
        keys = b"a" * 32, b"b" * 32
        haifa = SealedChannel("Bern", keys, arriving.append)
        bern = SealedChannel("Haifa", keys[::-1], arriving.append)
        if says:
            haifa.say_lost("Oslo")
        for message in arriving:
            bern.arrived(message)
        bern.lose("is gone")
        error = bern.lost.exception()
        assert isinstance(error, JointError)
        return error.names

    assert asyncio.run(blamed(says=False)) == ("Haifa",)
    assert asyncio.run(blamed(says=True)) == ("Oslo",)
