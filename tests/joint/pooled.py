"""The rule of joint centers on pooled rows: what must come out, computed in the clear."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from unpooled.center.questions.joint import (
    JointCategory,
    JointNumber,
    JointOutcome,
    JointPlan,
    Part,
)
from unpooled.center.questions.message import Grouping
from unpooled.federation.joint.computation.program import (
    CellMoments,
    JointMoments,
    JointNumbers,
    LevelCells,
    PartNumbers,
    cell_scale,
    part_weights,
    quartiles,
    scale_steps,
)
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.cutting import DRAW, JointCells, joint_cells
from unpooled.maths.joint.levels import fine_blocks, join_levels, joint_blocks
from unpooled.maths.joint.moments import leave_enough

ARM = Grouping(name="arm", levels=("control", "patient"))
AGE = Grouping(name="age", cuts=(40, 65))
CRP = JointNumber(
    variable="crp", scale=10.0, resolution=1.0, lower=0.0, upper=30.0, low=0.0, high=30.0
)
FAR = JointNumber(
    variable="far", scale=10.0, resolution=1.0, lower=None, upper=None, low=-20.0, high=160.0
)
ROUGH = JointNumber(
    variable="rough",
    scale=10.0,
    resolution=None,
    lower=0.0,
    upper=60.0,
    low=0.0,
    high=60.0,
    rough=True,
)
STAGE = JointCategory(variable="stage", levels=("I", "II", "III"), ordered=True)
SITE = JointCategory(variable="site", levels=("lung", "liver"))
MONTHS = JointOutcome(
    variable="months",
    event="died",
    event_is="1",
    horizon=24.0,
    scale=10.0,
    resolution=1.0,
    lower=0.0,
    upper=None,
    low=0.0,
    high=24.0,
)


@dataclass(frozen=True)
class People:
    """Counts of a plan: of each part (member, block, table, point), all and those who lack it."""

    plan: JointPlan
    sizes: IntArray  # member × block
    counts: list[IntArray]
    lacking: list[IntArray]
    draws: list[IntArray]  # block × table × point, as two members draw them
    coins: list[IntArray]

    def vectors(self) -> Iterator[IntArray]:
        """What each member shares."""
        for member in range(len(self.sizes)):
            vector, draws = [self.sizes[member]], []
            for i, part in enumerate(self.plan.parts):
                vector += [self.counts[i][member].ravel(), self.lacking[i][member].ravel()]
                if part.is_cut:
                    half = self.draws[i] // 2
                    one = [half, self.draws[i] - half][member] if member < 2 else 0 * half
                    coin = self.coins[i] if member == 0 else 0 * self.coins[i]
                    draws += [one.ravel(), coin.ravel()]
            yield np.concatenate([*vector, *draws])


def people_of(plan: JointPlan, vector: IntArray) -> People:
    """The people whom the sum of all members' shares is of, as if one center had them."""
    sizes, rest = vector[: plan.blocks], vector[plan.blocks : plan.counted]
    drawn = vector[plan.counted :]
    counts, lacking, draws, coins = (list[IntArray]() for _ in range(4))
    for part, size in plan.sections():
        shape = plan.blocks, part.tables, part.width
        one, two = rest[:size].reshape(2, *shape)
        rest = rest[size:]
        secrets = np.zeros((2, *shape), dtype=np.int64)
        if part.is_cut:
            secrets, drawn = drawn[:size].reshape(2, *shape), drawn[size:]
        for each, some in ((counts, one[None]), (lacking, two[None])):
            each.append(some)
        draws.append(secrets[0])
        coins.append(secrets[1])
    return People(plan, sizes[None], counts, lacking, draws, coins)


def people(rng: np.random.Generator, plan: JointPlan, members: int, mean: float) -> People:
    """Members with few people or many in each block, heaps of values, and some who lack one."""
    sizes = rng.poisson(rng.gamma(1, mean, (members, plan.blocks)))
    sizes[rng.random(members) < 0.2] = 0
    if ARM in plan.groupings and rng.random() < 0.5:
        sizes[:, fine_blocks([len(names) for names in plan.names])[:, 0] == 2] = 0
    counts, lacking, draws, coins = [], [], [], []
    for part in plan.parts:
        shape = (plan.blocks, part.tables, part.width)
        spread = rng.dirichlet(np.full(part.tables * part.width, rng.choice([0.1, 1.0])))
        if rng.random() < 0.5:
            spread[-1], spread[0] = 0, spread[0] + spread[-1]
        all_counts = np.array([[rng.multinomial(n, spread) for n in row] for row in sizes])
        one = all_counts.reshape(members, *shape)
        counts.append(one)
        lacking.append(rng.binomial(one, rng.choice([0.0, 0.02, 0.3, 0.9])))
        draws.append(rng.integers(0, DRAW + 1, (2, *shape)).sum(axis=0))
        coins.append(rng.integers(0, 2, shape))
    return People(plan, sizes, counts, lacking, draws, coins)


@st.composite
def populations(draw: st.DrawFn, k: st.SearchStrategy[int]) -> People:
    """Plans with no grouping, one or two, and people who fill them or do not."""
    groupings = draw(st.sampled_from([(), (ARM,), (AGE,), (ARM, AGE)]))
    parts: tuple[Part, ...] = draw(
        st.sampled_from([(CRP,), (STAGE, SITE), (MONTHS,), (FAR,), (ROUGH,), (CRP, MONTHS, SITE)])
    )
    plan = JointPlan(k=draw(k), groupings=groupings, parts=parts)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return people(rng, plan, draw(st.integers(3, 5)), draw(st.sampled_from([0.5, 3, 12])))


def expected(one: People) -> JointNumbers | None:
    """All that is opened, by the rules in the clear."""
    plan, k = one.plan, one.plan.k
    sizes = one.sizes.sum(axis=0)
    if sizes.sum() < 2 * k:
        return None
    ordered = [grouping.rises for grouping in plan.groupings]
    rows = joint_blocks(sizes, [len(names) for names in plan.names], ordered, 2 * k, plan.others)
    parts = tuple(
        _part(one, part, rows, i, [int(sizes[r].sum()) for r in rows])
        for i, part in enumerate(plan.parts)
    )
    return JointNumbers(
        blocks=tuple(tuple(r.tolist()) for r in rows),
        people=tuple(int(sizes[r].sum()) for r in rows),
        parts=parts,
    )


def _part(
    here: People, part: Part, rows: Sequence[IntArray], i: int, n: Sequence[int]
) -> PartNumbers:
    k = here.plan.k
    least = 2 * k if isinstance(part, JointNumber) else k
    missing: list[int] = []
    blocks: list[IntArray | None] = []
    for block, people_of_block in zip(rows, n, strict=True):
        counts = here.counts[i].sum(axis=0)[block].sum(axis=0)
        lacking = here.lacking[i].sum(axis=0)[block].sum(axis=0)
        m = int(lacking.sum())
        if m < k:
            missing, blocks = [*missing, 0], [*blocks, counts]
        elif people_of_block - m >= least:
            missing, blocks = [*missing, m], [*blocks, counts - lacking]
        else:
            missing, blocks = [*missing, 0], [*blocks, None]
    secrets = [(here.draws[i][block[0]], here.coins[i][block[0]]) for block in rows]
    agreed = None
    if isinstance(part, JointNumber) and part.rough and any(b is not None for b in blocks):
        agreed = agreed_scale(part, sum(b.sum(axis=0) for b in blocks if b is not None))
        at, part = part.coarser(agreed), part.at_scale(agreed)
        secrets = [tuple(s[:, : part.width] for s in both) for both in secrets]
        blocks = [
            None
            if b is None
            else np.array([[b[0][at == point].sum() for point in range(part.width)]])
            for b in blocks
        ]
    others = any(block is not None and block[..., -1].any() for block in blocks)
    each: list[dict[str, Any]] = [
        _block(part, counts, secret, k, others=others)
        for counts, secret in zip(blocks, secrets, strict=True)
    ]
    none = [block is None for block in blocks]

    def all_of(name: str) -> tuple[Any, ...]:
        return tuple(None if no else one[name] for no, one in zip(none, each, strict=True))

    match part:
        case JointNumber():
            return PartNumbers(
                missing=tuple(missing),
                tables=all_of("table"),
                cells=all_of("cells"),
                moments=all_of("moments"),
                scale=agreed,
            )
        case JointOutcome():
            return PartNumbers(
                missing=tuple(missing),
                tables=(*all_of("events"), *all_of("others")),
                cells=(*all_of("of events"), *all_of("of others")),
                either=all_of("either"),
                either_cells=all_of("of either"),
                below=all_of("below"),
            )
    return PartNumbers(missing=tuple(missing), levels=all_of("levels"))


def agreed_scale(part: JointNumber, counts: IntArray) -> float:
    """The scale that the quartiles of everybody say."""
    below = np.cumsum(counts)
    first, third = (int(np.argmax(below >= n)) for n in quartiles(int(below[-1])))
    of = part_weights(part).of
    return part.scales[int(scale_steps(part)(int(of[third] - of[first])))]


def _block(
    part: Part, counts: Any, secret: tuple[IntArray, IntArray], k: int, *, others: bool
) -> dict[str, Any]:
    if counts is None:
        return {}
    draws, coins = secret
    if isinstance(part, JointCategory):
        used = part.width - int(part.has_others and not others)
        cells = join_levels(counts[0, :used].tolist(), k, ordered=part.ordered)
        sums = tuple(int(counts[0][list(cell)].sum()) for cell in cells)
        return {"levels": LevelCells(cells=tuple(cells), counts=sums)}
    tables: list[JointCells | None] = [
        joint_cells(counts[t], k, draws[t], coins[t]) if counts[t].sum() >= k else None
        for t in range(part.tables)
    ]
    if isinstance(part, JointOutcome):
        if None not in tables:
            return {
                "events": tables[0],
                "others": tables[1],
                "either": None,
                "below": None,
                "of events": _cells(part, tables[0], counts[0], k),
                "of others": _cells(part, tables[1], counts[1], k),
                "of either": None,
            }
        either = joint_cells(counts.sum(axis=0), k, draws[0], coins[0])
        few = [t is None for t in tables]
        below = "both" if all(few) else "events" if few[0] else "censored"
        return {
            "events": None,
            "others": None,
            "either": either,
            "below": below,
            "of events": None,
            "of others": None,
            "of either": _cells(part, either, counts.sum(axis=0), k),
        }
    rounded = part_weights(part).moments(counts[0])
    moments = None if rounded is None else JointMoments(mean=rounded.mean, sd=rounded.sd)
    table, of_cells = tables[0], _cells(part, tables[0], counts[0], k)
    if table is not None and of_cells is not None and moments is not None:
        nothing = CellMoments(*[(None,) * len(table.counts)] * 2)
        if not may_leave(counts[0], table, k, nothing):
            moments = None
        elif not may_leave(counts[0], table, k, of_cells):
            of_cells = nothing
    return {"table": table, "moments": moments, "cells": of_cells}


def may_leave(counts: IntArray, table: JointCells, k: int, cells: CellMoments) -> bool:
    """Whether the moments of all may be told beside these of cells."""
    return leave_enough(counts, table, k, list(zip(cells.means, cells.sds, strict=True)))


def _cells(
    part: JointNumber | JointOutcome, table: JointCells | None, counts: IntArray, k: int
) -> CellMoments | None:
    """The moments of a table's cells, by the rule in the clear."""
    if table is None:
        return None
    scale = cell_scale(part, [table])
    moments = dict(zip(scale.cell.tolist(), scale.moments([counts], k), strict=True))
    each = [moments.get(cell, (None, None)) for cell in range(len(table.counts))]
    return CellMoments(means=tuple(m for m, _ in each), sds=tuple(s for _, s in each))
