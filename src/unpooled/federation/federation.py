"""The federation: what the analyst holds."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial, wraps
from inspect import signature
from pathlib import Path
from typing import Any, Literal, TypeVar, Unpack, cast, get_args, overload

from unpooled.analyses.catalogue import run_catalogue
from unpooled.analyses.conversation import Conversation, Coordinator, Link
from unpooled.analyses.crosstab import run_crosstab
from unpooled.analyses.numbers.compare import CompareOptions, run_comparison
from unpooled.analyses.numbers.describe import run_describe
from unpooled.analyses.numbers.parallel import run_distribution
from unpooled.analyses.numbers.quantiles import run_quantiles
from unpooled.analyses.numbers.table import run_table
from unpooled.analyses.protocols.ask_protocol import ProtocolReplies, ask_protocol, check_protocol
from unpooled.analyses.protocols.book import Book
from unpooled.analyses.protocols.protocol import ProtocolLike, draft_protocol, read_protocol
from unpooled.analyses.request import Request, check_codebook_name, stop_at_missing
from unpooled.analyses.specification import (
    COMPARE,
    CROSSTAB,
    DESCRIBE,
    QUANTILES,
    SURVIVAL,
    TABLE,
    TABLE1,
    Analysis,
)
from unpooled.analyses.survival import OutcomeRequest, run_survival
from unpooled.analyses.table1 import (
    Shown,
    VariableRow,
    category_row,
    has_few_values,
    noticed_in,
    number_row,
    quartiles,
    table_of,
)
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Codebook, Variable, check_codebook
from unpooled.center.policy import PerPerson, Policy
from unpooled.center.questions import Catalogue, CatalogueQuestion, Limits, Protocol
from unpooled.errors import InputError, RefusedError
from unpooled.federation.joint.run import Keepers, ask_with_joint
from unpooled.federation.local import name_by_file, open_link
from unpooled.federation.progress import Show
from unpooled.maths.ranks.mann_whitney import Alternative
from unpooled.results.catalogue import CatalogueResult
from unpooled.results.crosstab import CrosstabResult
from unpooled.results.numbers.compare import CompareResult
from unpooled.results.numbers.describe import DescribeResult
from unpooled.results.numbers.many_variables import ManyComparisons, ManyQuantiles, each
from unpooled.results.numbers.quantiles import DEFAULT_P, QuantilesResult, QuantileSummary
from unpooled.results.numbers.table import TableResult
from unpooled.results.protocol_check import ProtocolCheckResult
from unpooled.results.provenance.record import Record
from unpooled.results.provenance.releases import Releases
from unpooled.results.survival import SurvivalResult
from unpooled.results.table1 import Layout, Table1Result

OnMissing = Literal["stop", "exclude"]
F = TypeVar("F", bound=Callable[..., Any])


class _CompareOptions(CompareOptions, total=False):
    """What `compare` takes besides, of one variable or several."""

    where: str | None
    cuts: Sequence[float] | float | None
    max_bins: int | None


def _declared_as(analysis: Analysis) -> Callable[[F], F]:
    """Check a method's arguments as declared; the old keyword `value` goes on, and warns."""

    def decorate(method: F) -> F:
        arguments = signature(method)

        @wraps(method)
        def call(*given: Any, **named: Any) -> Any:
            if "value" in named:
                warnings.warn("value= is now variable=", DeprecationWarning, stacklevel=2)
                named["variable"] = named.pop("value")
            analysis.check(arguments.bind(*given, **named).arguments)
            return method(*given, **named)

        return cast("F", call)

    return decorate


class Federation:
    """Centers that can be asked together.

    Examples
    --------
    >>> import polars
    >>> frame = polars.DataFrame({"los": range(90), "hospital": ["Haifa"] * 50 + ["Bern"] * 40})
    >>> fed = Federation.split(frame, center="hospital", k=10)
    >>> fed.describe("los").to_dict()["groups"][0]["mean"]  # 44.5, rounded at each center
    44.44444444444444
    """

    def __init__(
        self,
        link: Link,
        variables: Codebook | None = None,
        seed: int | None = None,
        policy: Policy | None = None,
        on_missing: OnMissing = "exclude",
        keepers: Keepers | None = None,
    ) -> None:
        self._keepers = keepers
        self._coordinator = Coordinator(link, stop_at_missing if on_missing == "stop" else None)
        self._policy = policy
        self._variables = check_codebook(variables)
        self._seed = seed
        self._looked_up: set[str] = set()  # in the codebook
        self._kinds: dict[str, str] | None = None  # of variables, as the centers hold them

    @classmethod
    def local(
        cls,
        centers: Mapping[str, object] | Iterable[str | Path],
        *,
        k: int = 10,
        variables: Codebook | None = None,
        person: str | None = None,
        per_person: PerPerson | None = None,
        policy: Policy | None = None,
        ledger: str | Path | None = None,
        seed: int | None = None,
        joint: bool = False,
        on_missing: OnMissing = "exclude",
        progress: Show | None = None,
    ) -> "Federation":
        """A federation in this process, every center behind its own gate.

        Parameters
        ----------
        centers
            Frames or paths by name; or paths alone, each center named after its file.
        k
            Every released number describes at least this many people.
        variables
            What is public about variables (see `Variable`).
        person, per_person
            The column that names the person a row belongs to, and how several rows of one
            person become one value: "mean", "first" or "max".
        policy
            A whole policy, instead of `k`, `person` and `per_person`.
        ledger
            A folder for each center's ledger and key; in memory without it.
        seed
            Makes the boundaries the same every time, for demonstrations and tests.
        joint
            Whether centers that are too small to tell a protocol's blocks alone (by their policy's
            `joint`) count in a joint center, for protocols.
        on_missing
            A center does not answer at all, as where its data changed: "exclude" it, and the result
            names it, or "stop" with a `MissingError`.
        progress
            Called with a `Progress` whenever a center answered; `print` shows it as a line.
        """
        _check_on_missing(on_missing)
        data = dict(centers) if isinstance(centers, Mapping) else name_by_file(centers)
        sources = {name: open_source(rows) for name, rows in data.items()}
        chosen = _policy(policy, k, person, per_person)
        link = open_link(sources, chosen, variables, ledger, seed, joint=joint, progress=progress)
        return cls(link, variables, seed, chosen, on_missing, link.keepers)

    @classmethod
    def split(
        cls,
        data: object,
        center: str,
        *,
        k: int = 10,
        variables: Codebook | None = None,
        person: str | None = None,
        per_person: PerPerson | None = None,
        policy: Policy | None = None,
        ledger: str | Path | None = None,
        seed: int | None = None,
        joint: bool = False,
        on_missing: OnMissing = "exclude",
        progress: Show | None = None,
    ) -> "Federation":
        """A federation from one frame or file with a column that names the center.

        The other parameters are those of `local`.
        """
        _check_on_missing(on_missing)
        sources = open_source(data).split(center)
        chosen = _policy(policy, k, person, per_person)
        link = open_link(sources, chosen, variables, ledger, seed, joint=joint, progress=progress)
        return cls(link, variables, seed, chosen, on_missing, link.keepers)

    @classmethod
    def connect(
        cls,
        path: str | Path,
        *,
        variables: Codebook | None = None,
        timeout: float = 60.0,
        on_missing: OnMissing = "stop",
        progress: Show | None = None,
        joint: bool = False,
    ) -> "Federation":
        """The federation of a `federation.toml`: real centers, over the network.

        Parameters
        ----------
        path
            The file; the analyst's kit lies next to it, in `kits`, or where its `kit` says.
        variables
            What is public about variables (see `Variable`).
        timeout
            How many seconds a center may take for an answer; after that it is named as missing.
        on_missing
            What to do about a center that is down, late, answers nonsense, or whose steward
            refuses: "stop" raises a `MissingError` with its name, "exclude" goes on without it
            and says so in the result's `refusals`.
        progress
            Called with a `Progress` whenever more is known: which centers answered, and whose
            stewards are waited for. `print` shows it as a line.
        joint
            As for `local`; the keepers are those of the `federation.toml`.
        """
        from unpooled.federation.network import connect

        _check_on_missing(on_missing)
        link = connect(path, timeout, progress)
        if joint and link.keepers is None:
            link.close()
            raise InputError(
                f"{str(path)!r} names no keepers of a joint center. Hint: name three [[keepers]] "
                "before the kits are made"
            )
        keepers = link.keepers if joint else None
        return cls(link, variables, on_missing=on_missing, keepers=keepers)

    def close(self) -> None:
        """Let go of ledgers and network; a federation can also be used in a `with`."""
        self._coordinator.close()

    def __enter__(self) -> "Federation":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of the centers."""
        return self._coordinator.link.centers

    @property
    def releases(self) -> Releases:
        """All that has left the centers so far."""
        return Releases(tuple(self._coordinator.received))

    @property
    def counts_jointly(self) -> bool:
        """Whether a protocol has a joint center, for those who are too small."""
        return self._keepers is not None

    @property
    def codebook(self) -> Codebook:
        """What is public about the variables, as it was declared."""
        return dict(self._variables)

    def ask_protocol(
        self,
        protocol: ProtocolLike,
        centers: Sequence[str] | None = None,
        *,
        wait: bool = True,
    ) -> ProtocolReplies:
        """What these centers, or all, say to a protocol, part by part.

        Without `wait`, centers whose stewards have not decided yet stand in its `refusals` at
        once. A joint center waits for all.
        """
        conversation, plan = self._coordinator.converse(), read_protocol(protocol)
        return self._ask_protocol(conversation, plan, centers, wait=wait)

    def _ask_protocol(
        self,
        conversation: Conversation,
        protocol: Protocol,
        centers: Sequence[str] | None = None,
        *,
        wait: bool = True,
    ) -> ProtocolReplies:
        """What all centers say to a protocol, and the joint center, where there is one."""
        if self._keepers is None:
            return ask_protocol(conversation, protocol, centers, stewards=wait)
        return ask_with_joint(conversation, protocol, self._keepers, self._variables, centers)

    def catalogue(self, *, wait: bool = True) -> CatalogueResult:
        """Which variables there are, of which kind, and at which centers.

        Without `wait`, centers that are missing, and those whose stewards have not decided yet,
        stand in its `refusals`; the others' variables are there at once.
        """
        return run_catalogue(self._coordinator.converse(), self._variables, wait=wait)

    def for_another(self) -> "Federation":
        """The same centers for another analyst, with a record of their own of what arrived."""
        other = copy(self)
        other._coordinator = Coordinator(self._coordinator.link, self._coordinator.on_missing)
        other._looked_up = set()
        return other

    @_declared_as(TABLE)
    def table(
        self,
        variable: str,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        method: str = "chain",
        max_bins: int | None = None,
        limits: Limits = "open",
    ) -> TableResult:
        """A K-anonymous table of a variable, over all centers.

        Parameters
        ----------
        variable, by, groups, where
            The variable; the one that says who belongs to which group; which groups (all);
            which people, such as "age >= 65 and sex == 'F'".
        cuts
            Where `by`, a number, is cut into bands: `by="age", cuts=(40, 65)` has the groups
            "under 40", "40 to under 65" and "65 and over".
        method
            "chain": the largest center first, the others join one by one. "parallel": all centers
            at once; a smooth distribution with bands, and a histogram whose counts are estimates.
        max_bins
            At most this many bins; without it, as many as K allows.
        limits
            Outer limits of the chain: "open" (infinite), "natural" (as declared) or "buffer"
            (where allowed); "parallel" uses the declared ones.
        """
        if method == "parallel" and limits != "open":
            raise InputError(
                f"limits are for method 'chain', got {limits!r} with 'parallel', which keeps to "
                "the declared limits anyway"
            )
        conversation = self._coordinator.converse()
        request = self._request(conversation, variable, by, groups, where, cuts)
        if method == "parallel":
            smooth = run_distribution(conversation, request, self._declared(variable), max_bins)
            return replace(smooth, record=self._record(conversation))
        result = run_table(conversation, request, max_bins, limits)
        return replace(result, record=self._record(conversation))

    @_declared_as(DESCRIBE)
    def describe(
        self,
        variable: str,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
    ) -> DescribeResult:
        """n, missing, mean and SD per group; Welch's t-test where there are two groups.

        The parameters are those of `table`.
        """
        conversation = self._coordinator.converse()
        request = self._request(conversation, variable, by, groups, where, cuts)
        result = run_describe(conversation, request)
        return replace(result, record=self._record(conversation))

    @_declared_as(CROSSTAB)
    def crosstab(
        self,
        variable: str,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        levels: Sequence[object] | None = None,
        ordered: bool = False,
    ) -> CrosstabResult:
        """Two categories: counts, percentages, and whether they go together.

        Where a center has fewer than K people at a level it tells of several levels together:
        then a count has bounds, and tests are of the levels that are counted everywhere.

        Parameters
        ----------
        variable, by, groups, where, cuts
            As for `table`; of two groups and two levels, the chance of the second level in the
            second group is compared with that in the first.
        levels
            Which levels, in this order; all others are "other". Without it, those that K people
            of a center have.
        ordered
            Whether the levels rise: neighbours are merged, and there is a test for a trend.
        """
        conversation = self._coordinator.converse()
        request = self._request(conversation, variable, by, groups, where, cuts)
        result = run_crosstab(conversation, request, levels, ordered)
        return replace(result, record=self._record(conversation))

    @_declared_as(TABLE1)
    def table1(
        self,
        variables: str | list[str] | tuple[str, ...] | None = None,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        categories: Sequence[str] | None = None,
        layout: Layout = "full",
    ) -> Table1Result:
        """Table 1: who the people are, variable by variable and group by group.

        Each variable is asked by itself; a protocol asks all at once (`run`, `Book.table1`).

        Parameters
        ----------
        variables
            Which, in this order.
        by, groups, where, cuts
            As for `table`; without `by` there is one column, of everybody.
        categories
            Which of them are categories; text and few whole numbers are anyway.
        layout
            "full" (mean and median), or as "gtsummary" or "tableone" lay it out.
        """
        if variables is None:
            raise InputError("table1 needs variables, such as ['age', 'sex']. A book knows its own")
        names = [variables] if isinstance(variables, str) else list(variables)
        settled = groups  # the first variable settles which groups all have

        def row(name: str) -> VariableRow:
            nonlocal settled
            about: dict[str, Any] = {"groups": settled, "where": where, "cuts": cuts}
            if by is None:
                about = {"where": where}
            shown_row = self._table1_row(name, by, about, name in (categories or ()))
            settled = tuple(shown_row.people) if by is not None else None
            return shown_row

        return table_of(names, row, by, where, layout)

    def _table1_row(
        self, name: str, by: str | None, about: dict[str, Any], category: bool
    ) -> VariableRow:
        """A number by its tables, unless these show a few whole numbers; else a category."""
        shown = Shown(name, name, self._declared(name).unit)
        if category or self._is_text(name):
            return category_row(shown, self._levels(name, by, about))
        described = self.describe(name, by, **about)  # first: after tables it may be refused
        estimates = self.quantiles(name, [0.25, 0.5, 0.75], by, **about)
        assert isinstance(estimates, QuantilesResult)  # of one variable by one method
        if has_few_values(estimates.distribution):
            return category_row(shown, self._levels(name, by, about))
        compared = None
        if by is not None and len(described.groups) > 1:
            with suppress(InputError, RefusedError):
                compared = self.compare(name, by, **about)
        noticed = noticed_in(estimates)
        return number_row(shown, described, partial(quartiles, estimates), compared, noticed)

    def _is_text(self, name: str) -> bool:
        """Whether centers hold text or yes and no."""
        if self._kinds is None:
            catalogues = self._coordinator.converse().ask(CatalogueQuestion(), Catalogue)
            self._kinds = {
                variable.name: variable.kind
                for catalogue in catalogues.aggregates.values()
                for variable in catalogue.variables
            }
        return self._kinds.get(name, "float") not in ("integer", "float")

    def _levels(self, name: str, by: str | None, about: dict[str, Any]) -> CrosstabResult:
        if by is not None:
            return self.crosstab(name, by, **about)
        conversation = self._coordinator.converse()
        request = self._request(conversation, name, None, None, about["where"], None)
        crosstab = run_crosstab(conversation, request, None, False)
        return replace(crosstab, record=self._record(conversation))

    @overload
    def compare(
        self, variable: str, by: str | None = None, **options: Unpack[_CompareOptions]
    ) -> CompareResult: ...

    @overload
    def compare(
        self,
        variable: list[str] | tuple[str, ...],
        by: str | None = None,
        **options: Unpack[_CompareOptions],
    ) -> ManyComparisons: ...

    @_declared_as(COMPARE)
    def compare(
        self,
        variable: str | list[str] | tuple[str, ...],
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        ordered: bool = False,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        alternative: Alternative = "two-sided",
        method: str | Sequence[str] = "weighted",
        max_bins: int | None = None,
    ) -> CompareResult | ManyComparisons:
        """Does a variable differ between groups? Federated rank tests.

        Two groups are compared by Mann-Whitney tests, three or more by Kruskal and Wallis's and
        then every pair, ordered ones by Jonckheere and Terpstra's trend test instead.

        Parameters
        ----------
        variable
            One, or a list of several: then one row a variable, with Holm's and
            Benjamini-Hochberg's adjusted p-values.
        by, groups, where, cuts, max_bins
            As for `table`; of two groups, x is groups[0], y is groups[1].
        ordered
            Whether `groups` are given from the lowest to the highest.
        alternative
            "two-sided"; "greater": y is larger, or values rise with the order; "less".
        method
            "weighted" (recommended), "sum", "fisher", "table", "parallel" (two groups, as if
            pooled), several of them, or "all".
        """

        settled = groups  # of several variables, the first one settles which groups all have

        def run(name: str) -> CompareResult:
            nonlocal settled
            conversation = self._coordinator.converse()
            request = self._request(conversation, name, by, settled, where, cuts)
            shape, declared = (max_bins, self._limits(name)), self._declared(name)
            asked = request, ordered, alternative, method, shape, declared
            result = run_comparison(conversation, *asked)
            settled = result.groups
            return result.recorded(self._record(conversation))

        if isinstance(variable, list | tuple):
            return ManyComparisons(each(variable, run))
        return run(variable)

    @_declared_as(QUANTILES)
    def quantiles(
        self,
        variable: str | list[str] | tuple[str, ...],
        p: Sequence[float] | float = DEFAULT_P,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        method: str | Sequence[str] = "parallel",
    ) -> QuantilesResult | QuantileSummary | ManyQuantiles:
        """Quantiles of a variable (or several), by group.

        Parameters
        ----------
        variable, by, groups, where, cuts
            As for `table`.
        p
            Which quantiles, each in (0, 1).
        method
            "parallel" (one round, with 95 % intervals); "yj-likelihood" and "yj-grid" (the paper's
            fits, to the cells of the same round); the paper's "yj-table" and "interpolation" (one
            pass); several, side by side; or "all". "paper-grid" is the paper's own method, by name,
            of centers whose policy has `paper_iteration`.
        """

        def run(name: str) -> QuantileSummary:
            conversation = self._coordinator.converse()
            request = self._request(conversation, name, by, groups, where, cuts)
            public = self._limits(name), self._declared(name)
            summary = run_quantiles(conversation, request, p, method, *public)
            return summary.recorded(self._record(conversation))

        if isinstance(variable, list | tuple):
            return ManyQuantiles(each(variable, run))
        summary = run(variable)
        return summary.results[0] if len(summary.results) == 1 else summary

    @_declared_as(SURVIVAL)
    def survival(
        self,
        time: str,
        event: str,
        by: str | None = None,
        *,
        groups: Sequence[object] | None = None,
        where: str | None = None,
        cuts: Sequence[float] | float | None = None,
        event_is: object = None,
        horizon: float | None = None,
        at: Sequence[float] | None = None,
        entry: str | None = None,
    ) -> SurvivalResult:
        """Survival curves, by group: Kaplan-Meier, log-rank, hazard ratio, restricted means.

        Parameters
        ----------
        time, event
            The variable that holds each person's time, and the one that says who had the event
            at that time: 1 of 0/1, 2 of 1/2, True, yes or T.
        by, groups, where, cuts
            As for `table`; hazard ratios are those of the other groups to the first.
        event_is
            The value of `event` that means the event, where it is coded otherwise.
        horizon
            How far to look; follow-up beyond it is cut there. Without it, the declared upper
            limit of `time`, or a round number that the centers agree on.
        at
            Times at which survival is looked at, as in at=[12, 36, 60].
        entry
            Not possible: everybody is taken to be followed up from time 0 on.
        """
        conversation = self._coordinator.converse()
        request = self._request(conversation, time, by, groups, where, cuts)
        asked = OutcomeRequest.of(request, event, event_is, horizon, entry, at or ())
        result = run_survival(conversation, asked, self._declared(time))
        return replace(result, record=self._record(conversation))

    def check(self, protocol: ProtocolLike) -> ProtocolCheckResult:
        """What the centers would tell for a protocol: a dry run, without any count.

        It says which blocks can be released, what is merged and why, and which variables are lost.
        """
        joint = self._keepers is not None
        conversation, plan = self._coordinator.converse(), read_protocol(protocol)
        return check_protocol(conversation, plan, self._variables, joint=joint)

    def run(self, protocol: ProtocolLike, *, into: Book | None = None) -> Book:
        """Ask a study's protocol, in one round; the book answers every analysis of it.

        Parameters
        ----------
        protocol
            A protocol, its file, or its tables as plain values (`read_protocol`).
        into
            An earlier book of the same protocol: only the centers that it lacks are asked.
        """
        plan = read_protocol(protocol)
        if into is not None and into.protocol != plan:
            raise InputError(
                f"into is the book of another protocol, {into.protocol.title!r}: a protocol that "
                "was changed is a new one. Hint: run it without into"
            )
        centers = self.centers
        if into is not None and not {*into.asked} & {*centers}:
            raise InputError(
                f"into is a book of other centers, {', '.join(into.asked)}; these are "
                f"{', '.join(centers)}. Hint: run it without into"
            )
        if into is not None:
            counted = {*into.centers, *into.members}
            centers = tuple(center for center in centers if center not in counted)
            if not centers:
                return into
        replies = self._ask_protocol(self._coordinator.converse(), plan, centers)
        book = Book.of(replies)
        return book if into is None else into.merged_with(book)

    def draft_protocol(self, title: str = "A study") -> str:
        """The text of a protocol file to begin with, of what the centers say of their columns."""
        return draft_protocol(self._coordinator.converse(), title)

    def _request(
        self,
        conversation: Conversation,
        variable: str,
        by: str | None,
        groups: Sequence[object] | None,
        where: str | None,
        cuts: Sequence[float] | float | None,
    ) -> Request:
        """What is asked for, checked; over the network also against the codebook.

        In one process the codebook was checked when the centers were opened.
        """
        request = Request.of(variable, by, groups, where, cuts)
        if self._policy is None and variable not in self._looked_up:
            check_codebook_name(conversation, variable, self._variables)
            self._looked_up.add(variable)
        return request

    def _limits(self, variable: str) -> Limits:
        """Natural outer limits where some are declared and allowed, else open ones."""
        declared = self._declared(variable)
        either = declared.lower is not None or declared.upper is not None
        allowed = self._policy is None or "natural" in self._policy.limits
        return "natural" if either and allowed else "open"

    def _declared(self, variable: str) -> Variable:
        return self._variables.get(variable, Variable())

    def _record(self, conversation: Conversation) -> Record:
        """What was asked and answered in one conversation."""
        left = Releases(tuple(conversation.received))
        about = self._variables, self._seed, self._policy
        return Record(self.centers, left, *about, tuple(conversation.nearest))


def _check_on_missing(on_missing: str) -> None:
    if on_missing not in get_args(OnMissing):
        raise InputError(f"on_missing must be 'stop' or 'exclude', got {on_missing!r}")


def _policy(
    policy: Policy | None, k: int, person: str | None, per_person: PerPerson | None
) -> Policy:
    if policy is None:
        return Policy(k=k, person=person, per_person=per_person, ad_hoc="free")
    if (k, person, per_person) != (10, None, None):
        raise InputError("give either a policy or k, person and per_person, not both")
    return policy
