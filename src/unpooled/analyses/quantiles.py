"""Quantiles over all centers, from one parallel round or by the paper's estimators."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unpooled.analyses.asking import Request, ask_groups
from unpooled.analyses.compare import check_methods
from unpooled.analyses.describe import run_describe
from unpooled.analyses.parallel_quantiles import run_parallel
from unpooled.analyses.rounds import Asking, without_the_missing
from unpooled.analyses.table import run_table
from unpooled.center.cohort import RefusedQuestion, Selection
from unpooled.center.memory.remainders import fewest
from unpooled.center.policy import Policy, people_for_powers
from unpooled.coordinator import Coordinator
from unpooled.data.variables import Variable
from unpooled.errors import InputError, RefusedError, UnpooledError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.moments import SD_NEEDS, Rare, telling_values
from unpooled.maths.quantile import (
    PinballLoss,
    check_probabilities,
    minimise_loss,
    pinball,
    pool_losses,
)
from unpooled.maths.yeo_johnson import (
    DEFAULT_GRID,
    PowerMoments,
    YeoJohnsonFit,
    fit_grid,
    fit_likelihood,
    pool,
    power_moments,
    round_moments,
)
from unpooled.questions import (
    EVERYBODY,
    GroupLoss,
    GroupPowers,
    Limits,
    Losses,
    LossQuestion,
    Powers,
    PowersQuestion,
    Reason,
    Refusal,
)
from unpooled.results.quantiles import (
    Quantile,
    QuantilesResult,
    QuantileSummary,
    estimates,
    interpolation_estimates,
    without_estimate,
    yj_table_estimates,
)
from unpooled.results.refusals import NOBODY, CenterRefusal, center_refusals
from unpooled.results.table import TableResult

METHODS = ("parallel", "yj-table", "yj-likelihood", "yj-grid", "interpolation", "loss")
GRID_DIGITS = 5  # one pass over a grid needs no more
LIKELIHOOD_POWERS = 7 + 3 + 1  # λ in its three rounds

# --- at a center -------------------------------------------------------------------------------


def summarise_powers(question: PowersQuestion, selection: Selection, policy: Policy) -> Powers:
    """Each group's moments of the Yeo-Johnson transform."""
    if not 1 <= len(question.lambdas) <= policy.powers or not all(
        -1 <= v <= 2 for v in question.lambdas
    ):
        raise RefusedQuestion(Reason.NOT_ALLOWED)
    digits = [d for d in (question.digits, policy.power_digits) if d is not None]
    told = []
    for group, values in zip(selection.groups, selection.values(), strict=True):
        named = None if question.by is None or question.groups is None else group
        refused = refuse_powers(values, selection.ks, len(question.lambdas))
        if refused is not None:
            raise RefusedQuestion(refused.reason, named, refused.limit)
        moments = power_moments(values, question.lambdas)
        if digits:
            moments = round_moments(moments, min(digits))
        told.append(
            GroupPowers(
                group=group,
                n=moments.n,
                values=telling_values(values, *selection.ks),
                rare=_rare_people(values, selection.ks),
                log_sum=moments.log_sum,
                means=tuple(moments.mean.tolist()),
                variances=tuple(moments.variance.tolist()),
            )
        )
    return Powers(groups=tuple(told))


def refuse_powers(values: FloatArray, ks: Sequence[int], powers: int) -> Refusal | None:
    """Why a center does not tell so many powers of a group; None where it does."""
    needed = people_for_powers(max(ks), powers)
    if len(values) < needed or 0 < _rare_people(values, ks) < needed:
        return Refusal(reason=Reason.TOO_MANY_POWERS, limit=needed)
    if 0 < telling_values(values, *ks) < SD_NEEDS:
        return Refusal(reason=Reason.FEW_VALUES)
    return None


def _rare_people(values: FloatArray, ks: Sequence[int]) -> int:
    return fewest(*(Rare.of(values, k).people for k in ks))


def summarise_losses(question: LossQuestion, selection: Selection, policy: Policy) -> Losses:
    """Each group's quantile loss, where the policy turned it on by name."""
    if not policy.quantile_loss:
        raise RefusedQuestion(Reason.LOSS_OFF)
    told = []
    for group, values in zip(selection.groups, selection.values(), strict=True):
        loss = pinball(values, question.points, question.p)
        told.append(
            GroupLoss(
                group=group,
                n=loss.n,
                loss=tuple(loss.loss.tolist()),
                below=tuple(loss.below.tolist()),
                at_most=tuple(loss.at_most.tolist()),
            )
        )
    return Losses(groups=tuple(told))


# --- at the coordinator ------------------------------------------------------------------------


def run_quantiles(
    coordinator: Coordinator,
    request: Request,
    p: Sequence[float] | float,
    method: str | Sequence[str],
    limits: Limits,
    declared: Variable,
) -> QuantileSummary:
    """Estimate by each method in turn; one table serves the methods that need one."""
    try:
        wanted = check_probabilities(p)
    except ValueError as error:
        raise InputError(str(error)) from error
    methods = check_methods(method, METHODS, only_by_name=("loss",))
    if methods == ("parallel",):
        return QuantileSummary((run_parallel(coordinator, request, wanted, declared),))
    request, rounds = ask_groups(coordinator, request)
    groups = request.groups if request.groups is not None else (EVERYBODY,)
    estimator = _Estimator(coordinator, request, wanted, (limits, declared))
    results = tuple(estimator.estimate(name, groups, rounds) for name in methods)
    if estimator.refused and all(q.estimate is None for r in results for q in r.quantiles):
        raise estimator.refused[0]
    return QuantileSummary(results)


class _Estimator:
    """Asks what a method needs, group by group; a refused group does not stop the others."""

    def __init__(
        self,
        coordinator: Coordinator,
        request: Request,
        p: FloatArray,
        public: tuple[Limits, Variable],
    ) -> None:
        self.refused: list[RefusedError] = []
        self._limits, self._declared = public
        self._coordinator = coordinator
        self._request = request
        self._p = p
        self._tables: dict[str, TableResult] = {}
        self._refusals: list[tuple[str, Refusal]] = []
        self._rounds = 0

    def estimate(self, method: str, groups: Sequence[str], rounds: int) -> QuantilesResult:
        """One method's estimates for every group."""
        if method == "parallel":
            return self._parallel(groups, rounds)
        self._refusals, self._rounds = [], rounds
        by_method: dict[str, Callable[[str], list[Quantile]]] = {
            "yj-table": self._yj_table,
            "interpolation": self._interpolation,
            "yj-likelihood": self._yj_likelihood,
            "yj-grid": self._yj_grid,
            "loss": self._loss,
        }
        told: list[Quantile] = []
        denied: list[CenterRefusal] = []
        for group in groups:
            try:
                told += by_method[method](group)
            except RefusedError as refused:
                self.refused.append(refused)
                denied += refused.refusals
                told += without_estimate(group, self._p, NOBODY)
        from_table = method in ("yj-table", "interpolation")
        tables = tuple(self._tables[g] for g in groups if g in self._tables) if from_table else ()
        refusals = (
            *center_refusals(self._refusals),
            *denied,
            *(r for t in tables for r in t.refusals),
        )
        return QuantilesResult(
            value=self._request.variable,
            by=self._request.by,
            where=self._request.where,
            method=method,
            quantiles=tuple(told),
            refusals=tuple(dict.fromkeys(refusals)),
            rounds=self._rounds,
            tables=tables,
        )

    def _parallel(self, groups: Sequence[str], rounds: int) -> QuantilesResult:
        try:
            found = run_parallel(self._coordinator, self._request, self._p, self._declared)
            return replace(found, rounds=rounds + found.rounds)
        except RefusedError as refused:
            self.refused.append(refused)
            nothing = [q for g in groups for q in without_estimate(g, self._p, str(refused))]
            about = (self._request.variable, self._request.by, self._request.where)
            return QuantilesResult(*about, "parallel", tuple(nothing), refused.refusals, rounds + 1)

    def _about(self, group: str) -> Request:
        """The request for one group alone."""
        groups = None if self._request.by is None else (group,)
        return replace(self._request, groups=groups)

    def _table(self, group: str) -> TableResult:
        if group not in self._tables:
            self._tables[group] = run_table(
                self._coordinator, self._about(group), None, self._limits
            )
        self._rounds += self._tables[group].rounds
        return self._tables[group]

    def _yj_table(self, group: str) -> list[Quantile]:
        return yj_table_estimates(self._table(group), 0, self._p)

    def _interpolation(self, group: str) -> list[Quantile]:
        return interpolation_estimates(self._table(group), 0, self._p)

    def _yj_likelihood(self, group: str) -> list[Quantile]:
        ask = _Powers(self._coordinator, self._about(group), None, LIKELIHOOD_POWERS)
        return self._fitted(group, ask, lambda: fit_likelihood(ask))

    def _yj_grid(self, group: str) -> list[Quantile]:
        ask = _Powers(self._coordinator, self._about(group), GRID_DIGITS, len(DEFAULT_GRID))
        return self._fitted(group, ask, lambda: fit_grid(ask(np.array(DEFAULT_GRID))))

    def _fitted(
        self, group: str, ask: "_Powers", fit: Callable[[], YeoJohnsonFit]
    ) -> list[Quantile]:
        try:
            found = without_the_missing(fit)
        except UnpooledError:
            raise
        except ValueError as error:
            return without_estimate(group, self._p, str(error))
        finally:
            self._refusals += ask.refusals
            self._rounds += ask.rounds
        note = "the best λ lies at the bound of [−1, 2]" if found.at_bound else None
        return estimates(group, self._p, found.quantile(self._p), [note] * len(self._p))

    def _loss(self, group: str) -> list[Quantile]:
        about = self._about(group)
        ask = _Loss(self._coordinator, about)
        (described,) = run_describe(self._coordinator, about).groups
        self._rounds += 2
        if described.mean is None or described.sd is None:
            note = "mean and SD, which bound the search, were withheld"
            return without_estimate(group, self._p, note)
        p, spread = self._p, max(described.sd, 1e-12 * abs(described.mean), 1e-300)
        low = described.mean - spread * float(np.sqrt((1 - p) / p).max()) * 1.001
        high = described.mean + spread * float(np.sqrt(p / (1 - p)).max()) * 1.001
        found = without_the_missing(lambda: minimise_loss(ask, p, low, high))
        self._refusals += ask.refusals
        self._rounds += ask.rounds
        return estimates(group, p, found.estimate, [None] * len(p))


class _Powers(Asking):
    """One call is one round over the centers: the pooled moments at some λ."""

    def __init__(
        self, coordinator: Coordinator, request: Request, digits: int | None, powers: int
    ) -> None:
        super().__init__(coordinator, request)
        self._digits = digits
        self._powers = powers  # λ in all rounds

    def would_refuse(self, said: GroupPowers, k: int) -> Refusal | None:
        """The center counts the λ of all rounds together."""
        needed = people_for_powers(k, self._powers)
        if said.n >= needed:
            return None
        name = None if self.request.by is None else said.group
        return Refusal(reason=Reason.TOO_MANY_POWERS, name=name, limit=needed)

    def __call__(self, lambdas: FloatArray) -> PowerMoments:
        asked = tuple(lambdas.tolist())
        question = PowersQuestion(**self.request.fields, lambdas=asked, digits=self._digits)
        return pool(
            [
                PowerMoments(
                    said.n, said.log_sum, lambdas, np.array(said.means), np.array(said.variances)
                )
                for said in self.ask(question, Powers)
            ]
        )


class _Loss(Asking):
    """One call is one round over the centers: the pooled quantile loss at some points."""

    def __call__(self, points: FloatArray, p: FloatArray) -> PinballLoss:
        asked = tuple(np.asarray(points).tolist()), tuple(np.asarray(p).tolist())
        question = LossQuestion(**self.request.fields, points=asked[0], p=asked[1])
        return pool_losses(
            [
                PinballLoss(
                    said.n, np.array(said.loss), np.array(said.below), np.array(said.at_most)
                )
                for said in self.ask(question, Losses)
            ]
        )
