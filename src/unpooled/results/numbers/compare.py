"""A comparison of two groups or more, as the analyst holds it."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from unpooled.maths.ranks.effect import Heterogeneity, Interval, center_effect
from unpooled.maths.ranks.group_ranks import GroupRankStatistics
from unpooled.maths.ranks.heterogeneity import RandomEffects
from unpooled.maths.ranks.mann_whitney import Alternative, RankStatistics, TestResult
from unpooled.results.numbers.distribution import DistributionResult
from unpooled.results.numbers.quantiles import QuantileSummary, smooth_quantiles, table_quantiles
from unpooled.results.numbers.table import TableResult
from unpooled.results.provenance.record import Reach, Record
from unpooled.results.provenance.refusals import CenterRefusal, why_biased
from unpooled.results.report.page import Figure, Section, stacked
from unpooled.results.report.parts import Grid, Part, Sentences
from unpooled.results.report.text import (
    count,
    interval_cells,
    interval_dict,
    interval_text,
    number,
    p_text,
)
from unpooled.results.result import Result, subject

if TYPE_CHECKING:
    import altair


from unpooled.maths.ranks.simpson import is_clear, turned


@dataclass(frozen=True, slots=True)
class Paradox:
    """Both effects, the method of the second, and the centers that move it.

    `without` is the effect of everybody but those centers; None where no few centers stand out.
    """

    within: Interval
    pooled: Interval
    method: str
    centers: tuple[str, ...]
    without: float | None

    def sentence(self, x: str, y: str) -> str:
        """The contradiction in words.

        Examples
        --------
        >>> within, pooled = Interval(0.578, 0.54, 0.61), Interval(0.41, 0.38, 0.44)
        >>> print(Paradox(within, pooled, "parallel", ("Bern",), 0.57).sentence("A", "B"))
        Simpson's paradox: P(B > A) = 0.578 within centers, but 0.41 over all people together
        (parallel), since differences between centers turn the effect round. Bern moves it most;
        without this center it is 0.57. Rely on the effect within centers.
        """
        name = "Simpson's paradox: " if turned(self.within, self.pooled) else ""
        both = (
            f"{name}P({y} > {x}) = {number(self.within.estimate, 3)} within centers, but "
            f"{number(self.pooled.estimate, 3)} over all people together ({self.method}), "
            f"since differences between centers {self._what_they_do()}."
        )
        return f"{both} {self._who_moves_it()} Rely on the effect within centers."

    def _what_they_do(self) -> str:
        if turned(self.within, self.pooled):
            return "turn the effect round"
        return "hide the effect" if is_clear(self.within) else "look like an effect"

    def _who_moves_it(self) -> str:
        if self.without is None:
            return "No few centers stand out."
        *others, last = self.centers
        names = f"{', '.join(others)} and {last}" if others else last
        verb, these = ("move", "these centers") if others else ("moves", "this center")
        return f"{names} {verb} it most; without {these} it is {number(self.without, 3)}."


RECOMMENDED = "weighted"
NO_TABLE = "There is no table, so no distributions and no quantiles; method='all' asks for one."
_FEW_REFUSED = 4  # centers without an estimate that have a row of their own in a picture
_SURE = 0.05  # p below which an answer says that groups differ
_DISAGREE = 0.05  # p of heterogeneity below which centers are said to disagree
_LOG10 = math.log(10)


@dataclass(frozen=True, slots=True)
class PairComparison:
    """Two of the groups: x is groups[0], y is groups[1]; None is what nobody can tell."""

    groups: tuple[str, str]
    ranks: tuple[RankStatistics, ...]  # of the centers that have both
    test: TestResult | None
    log_holm: float | None  # the logarithm of Holm's p-value over all pairs
    effect: Interval | None  # P(Y > X) + ½P(Y = X)
    heterogeneity: Heterogeneity | None

    @property
    def label(self) -> str:
        """What the effect is the probability of."""
        return f"P({self.groups[1]} > {self.groups[0]})"

    @property
    def people(self) -> int:
        """The people of both groups at the centers that have both."""
        return sum(ranks.n_x + ranks.n_y for ranks in self.ranks)

    def to_dict(self) -> dict[str, Any]:
        """The pair as plain values."""
        test, adjusted = self.test, self.log_holm
        nothing = dict.fromkeys(("method", "statistic", "p_value", "log10_p", "note"))
        shown = nothing if test is None else test_dict(test)
        note = shown.pop("note")
        return {
            "groups": list(self.groups),
            **shown,
            "p_holm": None if adjusted is None else math.exp(adjusted),
            "log10_p_holm": None if adjusted is None else adjusted / _LOG10,
            "note": note,
            "effect": _interval_or_none(self.effect),
            "heterogeneity": _heterogeneity_or_none(self.heterogeneity),
            "centers": len(self.ranks),
        }

    def cells(self) -> list[str]:
        """The pair as a row of a table."""
        return [
            self.label,
            *(("–", "–") if self.effect is None else interval_cells(self.effect)),
            "–" if self.test is None else p_cell(self.test.log10_p),
            "–" if self.log_holm is None else p_cell(self.log_holm / _LOG10),
            "–" if self.heterogeneity is None else f"{self.heterogeneity.i2:.0%}",
            str(len(self.ranks)) if self.ranks or self.test is None else "table",
        ]


@dataclass(frozen=True, slots=True)
class CenterComparison:
    """One center's own comparison of the groups that it has, pair by pair.

    `all_ranks` and `test` are of all groups together; None where two groups are compared.
    """

    center: str
    groups: tuple[str, ...]
    pairs: Mapping[tuple[str, str], RankStatistics]
    all_ranks: GroupRankStatistics | None = None
    test: TestResult | None = None
    stratum: str | None = None  # where only people of it are compared

    @property
    def label(self) -> str:
        """Whose comparison it is."""
        return self.center if self.stratum is None else f"{self.center}, {self.stratum}"

    @property
    def ranks(self) -> RankStatistics:
        """Those of the first two groups."""
        return self.pairs[self.groups[0], self.groups[1]]

    @property
    def effect(self) -> Interval:
        """P(Y > X) + ½P(Y = X) of the first two groups."""
        return center_effect(self.ranks)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The people of each group; 0 where there are none."""
        if self.all_ranks is None:
            return self.ranks.n_x, self.ranks.n_y
        return tuple(map(int, self.all_ranks.sizes))

    @property
    def people(self) -> int:
        """The people of all groups."""
        return sum(self.sizes)

    def to_dict(self) -> dict[str, Any]:
        """The center's comparison as plain values; a group that it does not compare is left out."""
        if self.all_ranks is None or self.test is None:
            sizes = {"n_x": self.ranks.n_x, "n_y": self.ranks.n_y, "u": self.ranks.u}
            about = {"center": self.center, "stratum": self.stratum}
            return {**about, **sizes, "effect": interval_dict(self.effect)}
        sized = zip(self.groups, self.sizes, self.all_ranks.mean_ranks, strict=True)
        return {
            "center": self.center,
            "stratum": self.stratum,
            "groups": [
                {"group": group, "n": n, "mean_rank": float(rank)} for group, n, rank in sized if n
            ],
            "statistic": self.test.statistic,
            "df": self.test.df,
            "p_value": self.test.p_value,
            "log10_p": self.test.log10_p,
            "pairs": [
                {"groups": list(pair), "u": ranks.u, "effect": interval_dict(center_effect(ranks))}
                for pair, ranks in self.pairs.items()
            ],
        }

    def cells(self) -> list[str]:
        """The center as a row of a table."""
        sizes = [str(n) if n else "–" for n in self.sizes]
        if self.test is None:
            return [self.label, *sizes, *interval_cells(self.effect)]
        return [self.label, *sizes, number(self.test.statistic), p_cell(self.test.log10_p)]


@dataclass(frozen=True, slots=True)
class PooledComparison:
    """Everybody compared: pairs of one center at the center, all others by the centers' tables."""

    test: TestResult
    effect: Interval  # P(Y > X) + ½P(Y = X) over all people, whatever their center
    shift: Interval | None  # Hodges and Lehmann's; None where everybody has the same value
    distribution: DistributionResult
    paradox: Paradox | None = None  # where it contradicts the effect within centers

    def recorded(self, record: Record) -> "PooledComparison":
        """The same, with how it came about."""
        return replace(self, distribution=replace(self.distribution, record=record))

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain values."""
        centers = [center.to_dict() for center in self.distribution.centers]
        shift = _interval_or_none(self.shift)
        return {"effect": interval_dict(self.effect), "shift": shift, "centers": centers}


@dataclass(frozen=True, slots=True, repr=False)
class CompareResult(Result):
    """Groups compared: all of them, and every pair.

    Of two groups x is groups[0], y is groups[1], and U > 0 means that y is larger. Three or more
    are compared by Kruskal and Wallis or, if ordered, by Jonckheere and Terpstra.
    """

    variable: str
    by: str
    where: str | None
    groups: tuple[str, ...]
    ordered: bool
    alternative: Alternative
    methods: tuple[TestResult, ...]
    pairs: tuple[PairComparison, ...]
    centers: tuple[CenterComparison, ...]
    refusals: tuple[CenterRefusal, ...]
    table: TableResult | None
    rounds: int
    linked: tuple[tuple[str, ...], ...]  # groups that centers compare with each other
    biased: tuple[str, ...] = ()  # methods: which centers they rest on depends on the outcome
    unanswered: Mapping[str, str] = field(default_factory=dict)  # methods without a test, and why
    shift: Interval | None = None  # of two groups; needs tables, of the chain or on a lattice
    random: RandomEffects | None = None  # of two groups at several centers
    pooled: PooledComparison | None = None  # of two groups, by method "parallel"
    paradox: Paradox | None = None  # where all people together contradict the effect within centers
    record: Record = field(default_factory=Record)
    strata: tuple[str, ...] = ()  # groupings within which people are compared, as within centers

    @property
    def of_two(self) -> bool:
        """Whether two groups are compared, without an order."""
        return len(self.groups) == 2 and not self.ordered

    @property
    def test_name(self) -> str:
        """Whose test it is."""
        if self.ordered:
            return "jonckheere-terpstra"
        return "mann-whitney" if self.of_two else "kruskal-wallis"

    @property
    def recommended(self) -> str:
        """The method to rely on."""
        if self.centers and len(self.linked) == 1 and not self.biased:
            return RECOMMENDED
        sound = [test.method for test in self.methods if test.method not in self.biased]
        preferred = [method for method in sound if method in (RECOMMENDED, "table", "parallel")]
        return preferred[0] if preferred and self.of_two else "table"

    @property
    def why(self) -> str:
        """One sentence on the recommendation."""
        return self._why_of_two() if self.of_two else self._why_of_several()

    def _why_of_two(self) -> str:
        if self.biased:
            return why_biased(self.biased, self.recommended)
        if not self.centers:
            return "No center could compare the groups by itself; only their tables can."
        if self.strata:
            return self._within()
        if len(self.centers) == 1:
            return "With one center, weighted, sum and Fisher are the same test of that center."
        if self.pooled is not None and [test.method for test in self.methods] == ["parallel"]:
            reach = self.pooled.distribution.reach
            return (
                f"Parallel is the test of {reach.people_text} at {reach.centers_text}, as if "
                "pooled: differences between centers count as well. Weighted treats each center "
                "as a block."
            )
        return (
            "Weighted, van Elteren's stratified test, has the most power where the effect is alike "
            "at all centers, and treats each center as a block; Fisher does not keep its level "
            "where effects differ."
        )

    def _why_of_several(self) -> str:
        if not self.centers:
            return "No center could compare the groups by itself; only the table can."
        if len(self.linked) > 1:
            apart = " | ".join(", ".join(block) for block in self.linked)
            return (
                f"No center compares groups across these bars: {apart}. The center methods say "
                "nothing about such differences; only the table does."
            )
        if self.biased:
            return why_biased(self.biased, self.recommended)
        if self.strata:
            return self._within()
        if len(self.centers) == 1:
            return "With one center, weighted and sum are the same test of that center."
        return (
            "Weighted has the most power where the effects are alike at all centers, and treats "
            "each center as a block; Fisher does not keep its level where effects differ."
        )

    def _within(self) -> str:
        return (
            f"Only people of the same center and {' and '.join(self.strata)} are compared, so that "
            "differences between these do not count (van Elteren's stratified test)."
        )

    @property
    def test(self) -> TestResult:
        """The test that was asked for; of several, the recommended one if it is among them."""
        by_method = {test.method: test for test in self.methods}
        return by_method.get(self.recommended, self.methods[0])

    @property
    def p_value(self) -> float:
        """The p-value of `test`."""
        return self.test.p_value

    @property
    def log10_p(self) -> float:
        """The decimal logarithm of `p_value`, which does not underflow."""
        return self.test.log10_p

    @property
    def effect(self) -> Interval | None:
        """P(Y > X) + ½P(Y = X) of two groups; None where no center could compare them."""
        return self.pairs[0].effect if len(self.groups) == 2 else None

    @property
    def heterogeneity(self) -> Heterogeneity | None:
        """How much the centers' effects differ, of two groups."""
        return self.pairs[0].heterogeneity if len(self.groups) == 2 else None

    @property
    def reach(self) -> Reach:
        """Whom the tests are of."""
        if self.centers:
            people = sum(center.people for center in self.centers)
            people_of = {center.center: center.people for center in self.centers}
            return Reach.of(people_of, people, self.record, self.refusals, people_of)
        basis = self.table if self.pooled is None else self.pooled.distribution
        return Reach.of((), 0, self.record, self.refusals) if basis is None else basis.reach

    def recorded(self, record: Record) -> "CompareResult":
        """The same, with how it came about."""
        table = None if self.table is None else replace(self.table, record=record)
        pooled = None if self.pooled is None else self.pooled.recorded(record)
        return replace(self, table=table, pooled=pooled, record=record)

    def effect_of(self, method: str) -> Interval | None:
        """P(Y > X) + ½P(Y = X) of the people whom a method compares; None by the table."""
        if method == "parallel":
            return None if self.pooled is None else self.pooled.effect
        return self.effect if method != "table" and self.centers else None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain values; a comparison of two groups has more of them."""
        return {
            "value": self.variable,
            "by": self.by,
            "where": self.where,
            "strata": list(self.strata),
            "groups": list(self.groups),
            **({} if self.of_two else {"ordered": self.ordered, "test": self.test_name}),
            "alternative": self.alternative,
            "recommended": self.recommended,
            "why": self.why,
            "methods": [*map(self._method_dict, self.methods), *self._without_test()],
            **(self._two_dict() if self.of_two else {"pairs": [p.to_dict() for p in self.pairs]}),
            "centers": [center.to_dict() for center in self.centers],
            **({} if self.of_two else {"linked": [list(block) for block in self.linked]}),
            "notes": self.record.notes,
            "refusals": [refusal.to_dict() for refusal in self.refusals],
            "rounds": self.rounds,
        }

    def _method_dict(self, test: TestResult) -> dict[str, Any]:
        """Of several groups with the degrees of freedom."""
        plain = test_dict(test)
        if self.of_two:
            return plain
        before = {name: plain.pop(name) for name in ("method", "statistic")}
        return {**before, "df": test.df, **plain}

    def _without_test(self) -> list[dict[str, Any]]:
        nothing = dict.fromkeys(("statistic", "p_value", "log10_p"))
        return [{"method": m, **nothing, "note": why} for m, why in self.unanswered.items()]

    def _two_dict(self) -> dict[str, Any]:
        random = self.random
        return {
            "effect": _interval_or_none(self.effect),
            "shift": _interval_or_none(self.shift),
            "random_effects": None
            if random is None
            else {**interval_dict(random.mean), "tau": random.tau},
            "parallel": None if self.pooled is None else self.pooled.to_dict(),
            "heterogeneity": _heterogeneity_or_none(self.heterogeneity),
        }

    def chart(self) -> "altair.TopLevelMixin":
        """The charts of the report, one below the other."""
        return stacked(self.sections())

    def forest(self) -> "altair.TopLevelMixin":
        """The forest plot: of two groups the effect at each center, of more that of each pair."""
        from unpooled.results.charts.charts import forest

        label = self.record.label(self.variable)
        if not self.of_two:
            pairs = [(p.label, p.people, p.effect) for p in self.pairs if p.effect is not None]
            return forest(pairs, f"probability, {label}")
        rows = [(c.label, c.people, c.effect) for c in self.centers]
        name = "all centers" if self.reach.whole else self.reach.centers_text
        overall = {} if self.effect is None else {name: self.effect}
        if self.random is not None:
            overall["random effects"] = self.random.mean
        x, y = self.groups
        sides = f"higher in {x}", f"higher in {y}"
        without = without_estimate(self.refusals, [name for name, *_ in rows])
        return forest(rows, f"{self.pairs[0].label}, {label}", overall, sides, without)

    def sections(self) -> list[Section]:
        """The comparison and, where there are tables, what they show."""
        of = "at each center" if self.of_two else "of each pair of groups"
        caption = f"The effect {of}; ½ (dashed) means no difference."
        figures = [Figure(self.forest(), caption)] if self.centers else []
        lacking = [Sentences([NO_TABLE])] if self.table is None and self.pooled is None else []
        whole = [Section("Comparison", [*self.parts(), *lacking], figures)]
        if self.pooled is not None:
            smooth = self.pooled.distribution
            whole += [*smooth.sections(), QuantileSummary((smooth_quantiles(smooth),)).section()]
        if self.table is not None:
            whole += self.table.sections()
            if self.pooled is None:
                whole.append(table_quantiles(self.table).section())
        return whole

    @property
    def answer(self) -> str:
        """Which group is larger, or whether groups differ: how sure, and of how many people."""
        whom = self.reach
        if self.test.method == "parallel" and self.pooled is not None:
            whom = self.pooled.distribution.reach
        return f"{self.variable} {self._says()}, {whom}."

    def _says(self) -> str:
        p = f"p {p_text(self.log10_p)}"
        if not self.of_two:
            sure = self.log10_p < math.log10(_SURE)
            verb = "goes with the order of" if self.ordered else "differs between"
            if not sure:
                verb = f"does not clearly {verb.replace('goes', 'go').replace('differs', 'differ')}"
            return f"{verb} {', '.join(self.groups)} ({self.test_name}, {p})"
        x, y = self.groups
        effect = self.effect_of(self.test.method) or self.effect
        if effect is None:
            return f"by {self.by}: {p} by the {self.test.method} test"
        side = "higher" if effect.estimate > 0.5 else "lower"
        sure = effect.low > 0.5 or effect.high < 0.5
        says = f"is {side} in {y} than in {x}" if sure else f"does not clearly differ by {self.by}"
        return f"{says}: P({y} > {x}) = {interval_text(effect)}, {p}"

    def picture(self) -> Figure | None:
        """The forest plot: of two groups the effect at each center, of more that of each pair."""
        if not self.centers:
            return None if self.table is None else self.table.picture()
        of = "at each center" if self.of_two else "of each pair of groups"
        return Figure(self.forest(), f"The effect {of}; ½ (dashed) means no difference.")

    @property
    def title(self) -> str:
        """What was compared."""
        about = subject(self.variable, self.by, self.where)
        about += f", within {' and '.join(self.strata)}" if self.strata else ""
        if self.of_two:
            relation = {"two-sided": "differs from", "greater": "is above", "less": "is below"}
            x, y = self.groups
            return f"{about}: {y} {relation[self.alternative]} {x}?"
        question = "do they differ"
        if self.ordered:
            verbs = {"two-sided": "rise or fall", "greater": "rise", "less": "fall"}
            question = f"does it {verbs[self.alternative]} in this order"
        return f"{about}: {', '.join(self.groups)}: {question}?"

    def parts(self) -> list[Part]:
        """The tests, every pair of several groups, and each center's own comparison."""
        whole: list[Part] = [self._method_grid(), Sentences(self.sentences())]
        if not self.of_two:
            header = ["pair", "effect", "95 % interval", "p", "Holm", "I²", "centers"]
            pairs = Grid(header, [pair.cells() for pair in self.pairs])
            whole += [pairs, Sentences([self._pair_sentence()])]
        return [*whole, self._center_grid()] if self.centers else whole

    def _method_grid(self) -> Grid:
        """A row per method."""
        with_df = not self.of_two
        rows = [
            [
                test.method + (" (recommended)" if test.method == self.recommended else ""),
                number(test.statistic),
                *([df_cell(test)] if with_df else []),
                p_cell(test.log10_p),
                test.note or "",
            ]
            for test in self.methods
        ]
        rows += [[name, "-", "-", why] for name, why in self.unanswered.items()]
        name = "method" if self.of_two else self.test_name
        return Grid([name, "statistic", *(["df"] if with_df else []), "p", "note"], rows)

    def _center_grid(self) -> Grid:
        """A row per center."""
        outcome = [self.pairs[0].label, "95 % interval"] if self.of_two else ["statistic", "p"]
        return Grid(["center", *self.groups, *outcome], [c.cells() for c in self.centers])

    def _pair_sentence(self) -> str:
        return (
            f"Pairs by the Mann-Whitney test, {self.test.method}; Holm's p-values hold for all "
            f"{len(self.pairs)} together."
        )

    def sentences(self) -> list[str]:
        """What the result says, in words."""
        if self.of_two:
            return [self.why, *self._effect_sentences(), *self._center_sentences()]
        reach = str(self.reach)
        return [self.why, f"{reach[0].upper()}{reach[1:]}.", *self._table_reach()]

    def _table_reach(self) -> list[str]:
        if self.table is None or self.table.reach == self.reach:
            return []
        return [f"The table is {self.table.reach}."]

    def _effect_sentences(self) -> list[str]:
        """What two groups differ by."""
        x, y = self.groups
        label, pooled = self.pairs[0].label, self.pooled
        sentences = []
        if self.effect is not None and (pooled is None or self.effect != pooled.effect):
            sentences.append(f"{label} = {interval_text(self.effect)} {self.reach}.")
        if pooled is not None:
            effect, reach = interval_text(pooled.effect), pooled.distribution.reach
            sentences.append(f"As if pooled: {label} = {effect} {reach}.")
        if self.paradox is not None:
            sentences.append(self.paradox.sentence(x, y))
        sentences += self._table_reach()
        if self.shift is not None:
            sentences.append(f"{y} is shifted by {interval_text(self.shift)} against {x}.")
        return sentences

    def _center_sentences(self) -> list[str]:
        """How the centers differ."""
        differ, random = self.heterogeneity, self.random
        sentences = []
        if differ is not None and differ.df > 0:
            units = "strata" if self.strata else "centers"
            sentences.append(
                f"Between {units}: Q = {number(differ.q, 3)} on {count(differ.df, 'degree')} of "
                f"freedom, p = {differ.p_value:.2g}, I² = {differ.i2:.0%}."
            )
        if random is not None:
            sentences.append(
                f"Random effects: {self.pairs[0].label} = {interval_text(random.mean)} by Hartung "
                f"and Knapp, with SD {number(random.tau, 2)} between centers."
            )
        if random is not None and differ is not None and differ.p_value < _DISAGREE:
            sentences.append(
                "The centers disagree: no single effect describes all of them. Look at each, "
                "and at the interval of random effects."
            )
        return sentences + ([] if self.pooled is None else self.pooled.distribution.differing())

    def records(self) -> list[dict[str, Any]]:
        """A row per method of two groups, with its effect; a row per pair of several."""
        if self.of_two:
            return [self._method_record(test) for test in self.methods]
        return [self._pair_record(pair) for pair in self.pairs]

    def _method_record(self, test: TestResult) -> dict[str, Any]:
        x, y = self.groups
        row = {"variable": self.variable, "x": x, "y": y, **test_dict(test)}
        note = row.pop("note")
        return {**row, **_effect_record(self.effect_of(test.method)), "note": note}

    def _pair_record(self, pair: PairComparison) -> dict[str, Any]:
        plain = pair.to_dict()
        row = {"variable": self.variable, "x": pair.groups[0], "y": pair.groups[1]}
        row |= {name: plain[name] for name in ("method", "statistic", "p_value", "p_holm")}
        return {**row, **_effect_record(pair.effect), "centers": plain["centers"]}


def without_estimate(
    refusals: Sequence[CenterRefusal], answered: Sequence[str]
) -> list[tuple[str, str]]:
    """Centers that have no row of their own, and why; many of one reason in one row.

    Examples
    --------
    >>> small = [CenterRefusal(c, "F", "too-small", "fewer than 10 people") for c in "ABCDE"]
    >>> without_estimate(small[:1], "B"), without_estimate(small, "")
    ([('A', 'fewer than 10 people')], [('5 centers', 'fewer than 10 people')])
    """
    reasons = {r.center: r.rule for r in refusals if r.center not in answered}
    if len(reasons) <= _FEW_REFUSED:
        return list(reasons.items())
    counted = Counter(reasons.values())
    return [(count(n, "center"), reason) for reason, n in counted.items()]


def test_dict(test: TestResult) -> dict[str, Any]:
    """A test as plain values."""
    return {
        "method": test.method,
        "statistic": test.statistic,
        "p_value": test.p_value,
        "log10_p": test.log10_p,
        "note": test.note,
    }


def p_cell(log10_p: float) -> str:
    """A p-value in a table."""
    return p_text(log10_p).removeprefix("= ")


def df_cell(test: TestResult) -> str:
    """Degrees of freedom in a table."""
    return "–" if test.df is None else str(test.df)


def _effect_record(effect: Interval | None) -> dict[str, float | None]:
    nothing: dict[str, float | None] = dict.fromkeys(("estimate", "low", "high"))
    return nothing if effect is None else interval_dict(effect)


def _interval_or_none(interval: Interval | None) -> dict[str, float | None] | None:
    return None if interval is None else interval_dict(interval)


def _heterogeneity_or_none(differ: Heterogeneity | None) -> dict[str, float] | None:
    if differ is None:
        return None
    return {"q": differ.q, "df": differ.df, "p_value": differ.p_value, "i2": differ.i2}
