"""Does the effect of all people together contradict that within centers, and who moves it?"""

from collections.abc import Callable, Sequence

from unpooled.analyses.table import PLAINLY
from unpooled.maths.alike import Alike, alike_by_center
from unpooled.maths.effect import Interval, overall_effect
from unpooled.maths.mann_whitney import RankStatistics
from unpooled.maths.simpson import CenterPairs, contradicts, odd_centers, table_effect, turned
from unpooled.results.paradox import Paradox
from unpooled.results.table import TableResult


def find_paradox(
    ranks: Sequence[RankStatistics],
    pooled: Interval,
    method: str,
    centers: Sequence[str],
    pairs: Callable[[], CenterPairs],
) -> Paradox | None:
    """None where both agree, or one of them is not there; `pairs` are of these centers."""
    if not ranks:
        return None
    within = overall_effect(ranks)
    if not contradicts(within, pooled):
        return None
    between = pairs()
    odd = odd_centers(between, within)
    names = tuple(centers[i] for i in odd)
    return Paradox(within, pooled, method, names, between.effect(odd) if odd else None)


def find_table_paradox(
    ranks: Sequence[RankStatistics],
    table: TableResult,
    found: Alike,
    groups: tuple[str, str],
) -> Paradox | None:
    """The same by the counts of the chain's table.

    Where these leave much open they draw every effect towards ½: then only the opposite one counts.
    """
    pooled = table_effect(found.counts)
    if ranks and found.told < PLAINLY and not turned(overall_effect(ranks), pooled):
        return None

    def pairs() -> CenterPairs:
        people = alike_by_center(table.pools, table.table, groups)
        return CenterPairs.of_counts(people[:, 0], people[:, 1])

    return find_paradox(ranks, pooled, "table", list(table.people), pairs)
