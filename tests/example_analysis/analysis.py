"""An example of an analysis: it becomes analyses/chi_square.py."""

from collections.abc import Iterable, Sequence

import numpy as np
from scipy.special import gammaincc

from tests.example_analysis.result import ChiSquareResult
from unpooled.analyses.conversation import Conversation
from unpooled.analyses.request import Request, check_answered, in_order
from unpooled.center.questions import Categories, CategoryQuestion
from unpooled.results.provenance.refusals import center_refusals


def run_chi_square(conversation: Conversation, request: Request) -> ChiSquareResult:
    """One round; counts add up over centers.

    Levels that some center had to merge, since one has too few people, are merged everywhere.
    """
    round_ = conversation.ask(CategoryQuestion(**request.fields), Categories)
    answers = [group for answer in round_.aggregates.values() for group in answer.groups]
    groups = request.groups or tuple(in_order({answer.group for answer in answers}))
    check_answered(conversation, request, round_, [answer.group for answer in answers])
    cells = [
        (groups.index(answer.group), cell.levels, cell.count)
        for answer in answers
        for cell in answer.cells
    ]
    blocks = join_levels(levels for _, levels, _ in cells)
    counts = np.zeros((len(groups), len(blocks)), dtype=np.int64)
    for group, levels, people in cells:
        counts[group, next(i for i, block in enumerate(blocks) if levels[0] in block)] += people
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    statistic = float(((counts - expected) ** 2 / expected).sum())
    df = (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return ChiSquareResult(
        variable=request.variable,
        by=request.by or "",
        where=request.where,
        groups=groups,
        levels=tuple(" or ".join(block) for block in blocks),
        counts=tuple(map(tuple, counts.tolist())),
        statistic=statistic,
        df=df,
        log10_p=float(np.log10(gammaincc(df / 2, statistic / 2))),
        refusals=center_refusals(round_.refusals),
    )


def join_levels(cells: Iterable[Sequence[str]]) -> list[list[str]]:
    """The finest levels that all cells allow.

    Examples
    --------
    >>> join_levels([["I"], ["II", "III"], ["II"], ["III"]])
    [['I'], ['II', 'III']]
    """
    blocks: list[set[str]] = []
    for cell in cells:
        touching = [block for block in blocks if block & set(cell)]
        blocks = [block for block in blocks if block not in touching]
        blocks.append(set(cell).union(*touching))
    return sorted(sorted(block) for block in blocks)
