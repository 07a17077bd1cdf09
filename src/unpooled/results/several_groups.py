"""Several groups compared on several variables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from unpooled.results.compare import CompareResult
from unpooled.results.groups import GroupsResult
from unpooled.results.report.text import number
from unpooled.results.several import REACH, Comparisons, Outcome, SeveralComparisons, reach_cells

if TYPE_CHECKING:
    import altair


@dataclass(frozen=True, slots=True, repr=False)
class SeveralGroups(Comparisons[GroupsResult]):
    """Comparisons of several groups, of several variables."""

    def shown(self, result: GroupsResult) -> dict[str, Any]:
        """The statistic."""
        return {"statistic": result.test.statistic, "df": result.test.df}

    def chart(self) -> "altair.TopLevelMixin":
        """The effects of each variable's pairs, one plot below the other."""
        import altair

        charts: Any = [result.forest() for result in self.results if result.centers]
        charts = charts or [result.chart() for result in self.results]
        return altair.vconcat(*charts)

    def columns(self) -> tuple[list[str], list[list[str]]]:
        """A row a variable."""
        rows = [
            [
                r.value,
                r.test.method,
                number(r.test.statistic),
                "–" if r.test.df is None else str(r.test.df),
                *p,
                *reach_cells(r),
            ]
            for r, p in zip(self.results, self.p_cells(), strict=True)
        ]
        name = self.results[0].test_name
        return [
            "variable",
            name,
            "statistic",
            "df",
            "p",
            "Holm",
            "Benjamini-Hochberg",
            *REACH,
        ], rows


def several_comparisons(
    outcomes: Sequence[Outcome[CompareResult | GroupsResult]],
) -> SeveralComparisons | SeveralGroups:
    """All variables compare the same groups, hence all results are of one kind."""
    if any(isinstance(outcome.result, GroupsResult) for outcome in outcomes):
        return SeveralGroups(cast("tuple[Outcome[GroupsResult], ...]", tuple(outcomes)))
    return SeveralComparisons(cast("tuple[Outcome[CompareResult], ...]", tuple(outcomes)))
