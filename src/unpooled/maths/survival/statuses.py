"""Who had the event, where a center tells only that 1 to K−1 people had: one likelihood for all.

A person who leaves at time t has the event with probability h(t)/(h(t) + c(t)), of the hazards of
the event and of being censored. Its logit is the sum of a level for each group, a curve in time, a
slope in time for each arm and an effect of the center. Blocks whose statuses were told count person
by person. A block of which only the range of its number of events is known counts by the
probability of that range [1]_. So nothing depends on *which* centers could tell: those that had K
events or more are not taken to stand for those that had fewer.

Curves, tests and hazard ratios are linear in the single statuses, to first order. So they are
computed with expected statuses, and `Statuses.drawn` says how far these may be off: their
variance over draws from the posterior is added to that of the complete data [2]_. What is expected
is so at the mode: where most that is known are ranges, the posterior is wide and leans to the
middle of them, and its mean with it.

References
----------
.. [1] Gómez, Calle, Oller (2004), Statistical Papers 45, 139-173: interval-censored data.
.. [2] Rubin (1987), Multiple Imputation for Nonresponse in Surveys, section 3.1.
.. [3] Rue, Martino, Chopin (2009), Journal of the Royal Statistical Society B 71, 319-392.
.. [4] Hájek (1964), Annals of Mathematical Statistics 35, 1491-1523.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unpooled.maths.arrays import BoolArray, FloatArray, IntArray

DRAWS = 200  # from the posterior; an SD over them is off by 5 %
_SEED = 20_240  # the same tables give the same numbers
_KNOTS = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the curve in time, as shares of all who left
_FINE = 3  # pieces between two knots
_SPREADS = (0.05, 0.1, 0.2, 0.3, 0.45, 0.65, 0.9, 1.3)  # SDs of center effects, looked at in turn
_PRIOR_SD = {"level": 5.0, "group": 2.0, "curve": 1.5, "slope": 1.0, "end": 3.0}  # logits
_AT_END = -6.0  # logits: who is still followed at the horizon seldom has the event just there
_STEPS, _FAR, _CLOSE = 40, 2.0, 1e-8  # of Newton's method


@dataclass(frozen=True, slots=True)
class BlockPeople:
    """The people of a block: when they leave, and how many of them with the event.

    `events` is None where that was not told; there are then `least` to `most` of them in all.
    """

    center: int
    groups: tuple[str, ...]  # the arm first
    times: FloatArray
    people: FloatArray
    events: FloatArray | None
    least: int = 0
    most: int = 0


@dataclass(frozen=True, slots=True)
class Statuses:
    """The expected number of events at each time of a block, and how draws differ from it."""

    events: FloatArray
    drawn: FloatArray  # a row per time, a column per draw


def expected_statuses(blocks: Sequence[BlockPeople], end: float) -> dict[int, Statuses]:
    """The statuses of the blocks that did not tell them, by their place; `end` is the horizon's.

    Examples
    --------
    >>> times, one = np.arange(1.0, 61.0), np.ones(60)
    >>> half = BlockPeople(0, ("a",), times, one, np.tile([0.0, 1.0], 30))
    >>> few = BlockPeople(1, ("a",), times, one, None, 1, 9)
    >>> blocks = expected_statuses([half, half, few], 60.0)
    >>> list(blocks), bool(5 < blocks[2].events.sum() < 9)
    ([2], True)
    """
    unknown = [i for i, block in enumerate(blocks) if block.events is None]
    if not unknown:
        return {}
    model = _Model.of(blocks, end)
    posterior = _posterior(_Counts.of(blocks, model))
    random, statuses = np.random.default_rng(_SEED + 1), dict[int, Statuses]()
    for i in unknown:
        columns = model.columns(blocks[i])
        drawn = _draws(blocks[i], columns @ posterior.draws, random)
        _, chance, _ = _chances(blocks[i], columns @ posterior.modes)
        statuses[i] = Statuses(blocks[i].people * (chance @ posterior.weights), drawn)
    return statuses


@dataclass(frozen=True, slots=True)
class _Model:
    """The columns of the logit and the SDs of their priors; centers come last."""

    knots: FloatArray
    levels: tuple[tuple[str, ...], ...]  # of each grouping
    centers: IntArray
    end: float

    @classmethod
    def of(cls, blocks: Sequence[BlockPeople], end: float) -> "_Model":
        times = np.concatenate([block.times for block in blocks])
        people = np.concatenate([block.people for block in blocks])
        order = np.argsort(times, kind="stable")
        reached = np.cumsum(people[order]) / people.sum()
        at = np.minimum(np.searchsorted(reached, _KNOTS), len(times) - 1)
        levels = [
            tuple(dict.fromkeys(names)) for names in zip(*(b.groups for b in blocks), strict=True)
        ]
        centers = np.unique([block.center for block in blocks])
        return cls(np.unique(times[order][at]), tuple(levels), centers, end)

    @property
    def prior_sd(self) -> FloatArray:
        """Of all columns but the centers'."""
        arms = len(self.levels[0])
        groups = sum(map(len, self.levels))
        counts = {"level": 1, "group": groups, "curve": len(self.knots), "slope": arms, "end": 1}
        return np.repeat([_PRIOR_SD[name] for name in counts], list(counts.values()))

    def place(self, times: FloatArray) -> FloatArray:
        """Where times lie among the knots: 0 at the first, 1 at the second..."""
        return np.interp(times, self.knots, np.arange(len(self.knots)))

    def columns(self, block: BlockPeople) -> FloatArray:
        """A row per time of the block."""
        place, n = self.place(block.times), len(block.times)
        curve = np.maximum(1 - np.abs(place[:, None] - np.arange(len(self.knots))), 0.0)
        half = max(len(self.knots) - 1, 1) / 2
        group = np.concatenate(
            [
                np.array(levels) == name
                for levels, name in zip(self.levels, block.groups, strict=True)
            ]
        )
        arm = np.array(self.levels[0]) == block.groups[0]
        return np.column_stack(
            (
                np.ones(n),
                np.tile(group.astype(float), (n, 1)),
                curve,
                np.outer(place / half - 1, arm),
                block.times >= self.end,
                np.tile((self.centers == block.center).astype(float), (n, 1)),
            )
        )

    def coarse(self, block: BlockPeople) -> BlockPeople:
        """The same people at few times: their mean in each piece between knots."""
        late = block.times >= self.end
        piece = np.floor(self.place(block.times) * _FINE).astype(np.int64) * 2 + late
        _, piece = np.unique(piece, return_inverse=True)
        people = np.bincount(piece, block.people).astype(np.float64)
        means = np.bincount(piece, block.people * block.times) / people
        early = np.minimum(means, np.nextafter(self.end, 0.0))
        times = np.where(np.bincount(piece, late) > 0, self.end, early)
        had = None if block.events is None else np.bincount(piece, block.events)
        events = None if had is None else had.astype(np.float64)
        return BlockPeople(
            block.center, block.groups, times, people, events, block.least, block.most
        )


@dataclass(frozen=True, slots=True)
class _Ranges:
    """Numbers of events of which only the range is known, a row per block."""

    people: FloatArray
    numbers: FloatArray  # the possible ones, a row per block
    possible: BoolArray

    @classmethod
    def of(cls, blocks: Iterable[BlockPeople]) -> "_Ranges":
        rows = [(float(round(b.people.sum())), b.least, b.most) for b in blocks]
        people, least, most = np.array(rows, dtype=np.float64).reshape(-1, 3).T
        width = int((most - least).max()) + 1 if len(most) else 1
        numbers = least[:, None] + np.arange(width)
        return cls(people, np.minimum(numbers, most[:, None]), numbers <= most[:, None])

    def log_terms(self, share: FloatArray) -> FloatArray:
        """The logarithms of the binomial chances; `share` has a row per block, and columns."""
        from scipy.special import gammaln

        n, d = self.people[:, None], self.numbers
        ways = gammaln(n + 1) - gammaln(d + 1) - gammaln(n - d + 1)
        ways = np.where(self.possible, ways, -np.inf)[..., None]
        p = np.clip(share, 1e-12, 1 - 1e-12)[:, None]
        return np.asarray(ways + d[..., None] * np.log(p) + (n - d)[..., None] * np.log1p(-p))

    def moments(self, share: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The log chance of the range, and mean and variance of the number within it."""
        terms = self.log_terms(share)
        top = terms.max(axis=1, keepdims=True)
        chance = np.exp(terms - top)
        whole = chance.sum(axis=1)
        d = self.numbers[..., None]
        mean = (chance * d).sum(axis=1) / whole
        variance = (chance * (d - mean[:, None]) ** 2).sum(axis=1) / whole
        return top[:, 0] + np.log(whole), mean, variance


@dataclass(frozen=True, slots=True)
class _Counts:
    """All blocks at few times: exact numbers of events, and ranges."""

    exact: FloatArray  # columns of the rows whose events are exact
    people: FloatArray
    events: FloatArray
    open: FloatArray  # columns of the rows of the other blocks
    open_people: FloatArray
    block: IntArray  # of each open row
    ranges: _Ranges
    prior_sd: FloatArray
    expected: FloatArray  # the prior's means

    @classmethod
    def of(cls, blocks: Sequence[BlockPeople], model: _Model) -> "_Counts":
        coarse = [model.coarse(block) for block in blocks]
        exact = [block for block in coarse if block.events is not None]
        other = [block for block in coarse if block.events is None]
        width = len(model.prior_sd) + len(model.centers)
        none = [np.empty((0, width))]
        expected = np.zeros(width)
        expected[len(model.prior_sd) - 1] = _AT_END
        return cls(
            np.concatenate([model.columns(block) for block in exact] or none),
            np.concatenate([block.people for block in exact] or [np.empty(0)]),
            np.concatenate([b.events for b in exact if b.events is not None] or [np.empty(0)]),
            np.concatenate([model.columns(block) for block in other]),
            np.concatenate([block.people for block in other]),
            np.repeat(np.arange(len(other)), [len(block.times) for block in other]),
            _Ranges.of(other),
            model.prior_sd,
            expected,
        )

    def precision(self, spread: float) -> FloatArray:
        """Of the prior, where center effects have this SD."""
        centers = self.open.shape[1] - len(self.prior_sd)
        return np.concatenate((self.prior_sd, np.full(centers, spread))) ** -2.0

    def look(self, at: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The log likelihood, its slope and its information."""
        logit = self.exact @ at
        p = _chance(logit)
        likelihood = float(self.events @ logit - self.people @ np.logaddexp(0.0, logit))
        slope = self.exact.T @ (self.events - self.people * p)
        information = self.exact.T @ ((self.people * p * (1 - p))[:, None] * self.exact)
        p = _chance(self.open @ at)
        n = self.ranges.people
        share = np.bincount(self.block, self.open_people * p) / n
        spread = n * share * (1 - share)  # of a binomial number
        chance, mean, variance = (part[:, 0] for part in self.ranges.moments(share[:, None]))
        each = self.open_people * p * (1 - p) / spread[self.block]
        turned = np.zeros((len(n), self.open.shape[1]))  # d logit(share) / d coefficients
        np.add.at(turned, self.block, each[:, None] * self.open)
        slope = slope + turned.T @ (mean - n * share)
        gained = np.maximum(spread - variance, 0.0)
        information = information + turned.T @ (gained[:, None] * turned)
        return likelihood + float(chance.sum()), slope, information


def _chance(logit: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-np.clip(logit, -35, 35))))


@dataclass(frozen=True, slots=True)
class _Posterior:
    """Coefficients, a column per draw; and their modes for each SD of the center effects."""

    draws: FloatArray
    modes: FloatArray
    weights: FloatArray


def _posterior(counts: _Counts) -> _Posterior:
    """Normal about the mode for a given SD of the center effects.

    That SD has its own posterior by Laplace's approximation, as in [3]_. Draws come in pairs on
    both sides of the mode.
    """
    modes, weights = [], []
    at = np.array(counts.expected)
    for spread in _SPREADS:
        at, height, information = _mode(counts, counts.precision(spread), at)
        modes.append((at, information))
        centers = len(at) - len(counts.prior_sd)
        _, size = np.linalg.slogdet(information)
        weights.append(height - centers * np.log(spread) - size / 2 - spread**2 / 2)
    chance = np.exp(np.array(weights) - max(weights)) * np.array(_SPREADS)  # a grid in log SD
    share = np.cumsum(chance) / chance.sum()
    pairs = DRAWS // 2
    chosen = np.searchsorted(share, (np.arange(pairs) + 0.5) / pairs)
    random = np.random.default_rng(_SEED)
    drawn = []
    for number in np.unique(chosen):
        mode, information = modes[number]
        normal = random.standard_normal((len(mode), int(np.sum(chosen == number))))
        away = np.linalg.solve(np.linalg.cholesky(information).T, normal)
        drawn += [mode[:, None] + away, mode[:, None] - away]
    of_each = np.column_stack([mode for mode, _ in modes])
    return _Posterior(np.concatenate(drawn, axis=1), of_each, chance / chance.sum())


def _mode(
    counts: _Counts, precision: FloatArray, at: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """The mode, the log posterior there and its information; by Newton's method, halving steps."""
    height = -np.inf
    step: FloatArray = np.zeros(len(at))
    for _ in range(_STEPS):
        likelihood, slope, information = counts.look(at + step)
        reached = likelihood - float(precision @ (at + step - counts.expected) ** 2) / 2
        if reached < height - 1e-9:
            step = step / 2
            if np.abs(step).max() < _CLOSE:
                break
            continue
        at, height = at + step, reached
        full = information + np.diag(precision)
        step = np.asarray(
            np.linalg.solve(full, slope - precision * (at - counts.expected)), dtype=np.float64
        )
        step = step * min(1.0, _FAR / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _CLOSE:
            break
    return at, height, full


def _chances(block: BlockPeople, logit: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The chance of each number of events, of each person given the range, and the mean number.

    `logit` has a column per draw, and so have they.
    """
    people = block.people[:, None]
    ranges = _Ranges.of([block])
    share = (people * _chance(logit)).sum(axis=0, keepdims=True) / people.sum()
    terms = ranges.log_terms(share)[0]
    chance = np.exp(terms - terms.max(axis=0))
    chance /= chance.sum(axis=0)
    mean = ranges.numbers[0] @ chance
    return chance, _with_sum(logit, people, mean), mean


def _draws(block: BlockPeople, logit: FloatArray, random: np.random.Generator) -> FloatArray:
    """How far draws of the statuses differ from what is expected; `logit` has a column per draw.

    Given their number, statuses are a conditional Poisson sample, whose covariance is near that of
    [4]_: diag(v) − v vᵀ/Σv with v = p(1 − p).
    """
    people, numbers = block.people[:, None], _Ranges.of([block]).numbers[0]
    chance, p, mean = _chances(block, logit)
    place = (np.cumsum(chance, axis=0) < random.random(chance.shape[1])).sum(axis=0)
    number = numbers[np.minimum(place, len(chance) - 1)]
    v = people * p * (1 - p)
    normal = np.sqrt(v) * random.standard_normal(v.shape)
    whole = np.maximum(v.sum(axis=0), 1e-12)
    noise = normal + v * (number - mean - normal.sum(axis=0)) / whole
    return np.asarray(people * (p - p.mean(axis=1, keepdims=True)) + noise)


def _with_sum(logit: FloatArray, people: FloatArray, total: FloatArray) -> FloatArray:
    """The chances with their logits moved, each column by as much, so that they sum to `total`."""
    move: FloatArray = np.zeros(logit.shape[1])
    low: FloatArray = move - 60.0
    high: FloatArray = move + 60.0
    for _ in range(60):
        p = _chance(logit + move)
        miss = np.asarray((people * p).sum(axis=0) - total)
        low, high = np.where(miss < 0, move, low), np.where(miss < 0, high, move)
        slope = np.maximum((people * p * (1 - p)).sum(axis=0), 1e-300)
        newton = move - miss / slope
        inside = (newton > low) & (newton < high)
        move = np.asarray(np.where(inside, newton, (low + high) / 2), dtype=np.float64)
        if np.abs(miss).max() < 1e-9:
            break
    return p
