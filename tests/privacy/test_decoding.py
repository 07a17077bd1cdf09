"""Numbers that say more than they mean: exact sums and ranks are decoded to single people.

Each attack reads honest answers of a center at its default policy. It claims how many people have
a value, or what one person's value is; it counts where fewer than K people are meant.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from tests.privacy.curious import K, Score, aggregate, ask, open_center, total
from tests.privacy.lattice_attack import Reduce, Sums, reduced, whole_counts
from unpooled import Federation
from unpooled.center.questions import GroupRanksQuestion, MomentsQuestion, PowersQuestion
from unpooled.errors import UnpooledError
from unpooled.maths.arrays import FloatArray
from unpooled.maths.quantiles.yeo_johnson import transform

TRIES = 6  # guesses of what the counts may be

Random = np.random.Generator
Counts = npt.NDArray[np.int64]


def small_counts(claimed: Counts | None, truth: Counts) -> Score:
    """How many of the counts of 1 to K−1 people are claimed rightly."""
    few = (truth > 0) & (truth < K)
    if claimed is None:
        return Score(tried=int(few.sum()))
    answer = (claimed > 0) & (claimed < K)
    return Score(int((few & (claimed == truth)).sum()), int(answer.sum()), int(few.sum()))


def shares(values: FloatArray, scale: FloatArray) -> Counts:
    """How many people have each value of a scale."""
    return np.array([np.count_nonzero(values == value) for value in scale])


# --- moments of a transform at several λ -------------------------------------------------------


def scores(random: Random, people: int) -> FloatArray:
    """A sum score of 0 to 27."""
    return np.minimum(random.gamma(2, 4, people).round(), 27.0)


def days(random: Random, people: int) -> FloatArray:
    """How long people stayed in a hospital, 1 to 60."""
    return np.minimum(random.gamma(1.5, 5, people).round() + 1, 60.0)


def last_digit(number: float) -> float:
    """Half a unit of the last digit that is told, or what double precision leaves."""
    exponent = Decimal(repr(number)).as_tuple().exponent
    assert isinstance(exponent, int)
    return max(0.5 * 10.0**exponent, 1e-15 * abs(number))


def power_sums(fed: Federation, scale: FloatArray) -> Sums | None:
    """All that left one center of the transform of its people, as sums over their values."""
    result = []
    for release in fed.releases:
        message = aggregate(release.payload)
        if not isinstance(release.question, PowersQuestion) or not message:
            continue
        (answer,) = message["groups"]
        people = answer["n"]
        logs = answer["log_sum"] / people
        result += [
            (scale * 0 + 1, people, 0.05),
            (transform(scale, 0.0), people * logs, people * last_digit(round(logs, 12))),
        ]
        moments = zip(release.question.lambdas, answer["means"], answer["variances"], strict=True)
        for lam, mean, variance in moments:
            part = transform(scale, lam)
            result.append((part, people * mean, people * last_digit(mean)))
            result.append(((part - mean) ** 2, people * variance, people * last_digit(variance)))
    if not result:
        return None
    weights, told_sums, errors = zip(*result, strict=True)
    return Sums(np.array(weights), np.array(told_sums), np.array(errors))


def gamma_guess(sums: Sums, scale: FloatArray) -> FloatArray:
    """Counts of a gamma distribution with the mean and variance that were told at λ = 1."""
    people = sums.values[0]
    (at,) = np.flatnonzero([np.allclose(part, scale) for part in sums.weights])[:1]
    mean, variance = sums.values[at] / people, sums.values[at + 1] / people
    shape = mean**2 / variance
    density = np.exp((shape - 1) * np.log(scale + 0.5) - scale * mean / variance)
    return np.asarray(np.maximum(people * density / density.sum(), 0.02))


def powers_attack(
    values: FloatArray, scale: FloatArray, method: str, reduce: Reduce = reduced
) -> Score:
    """An analyst fits λ as the paper does; what left is solved for the whole numbers behind it."""
    fed = Federation.local({"Porto": pl.DataFrame({"v": values})}, seed=1)
    try:
        fed.quantiles("v", method=method)
    except UnpooledError:
        return small_counts(None, shares(values, scale))
    sums = power_sums(fed, scale)
    claimed = None if sums is None else near_a_guess(sums, gamma_guess(sums, scale), reduce)
    return small_counts(claimed, shares(values, scale))


def near_a_guess(sums: Sums, guess: FloatArray, reduce: Reduce) -> Counts | None:
    """The counts that give the sums, looked for near several guesses."""
    random = np.random.default_rng(0)
    for _ in range(TRIES):
        result = whole_counts(sums, guess * random.uniform(0.7, 1.4, len(guess)), reduce)
        if result is not None:
            return result
    return None


@pytest.mark.parametrize(
    ("draw", "scale", "people", "runs"),
    [
        (scores, np.arange(28.0), 60, 3),
        (scores, np.arange(28.0), 90, 3),
        (days, np.arange(1.0, 61.0), 60, 1),
    ],
)
def test_fitting_a_transform_does_not_tell_everybody_s_value(
    draw: Callable[[Random, int], FloatArray], scale: FloatArray, people: int, runs: int
) -> None:
    """Exact sums gave all small counts, 123 of 123, and all values of all people in 7 of 7 runs."""
    result = total(
        powers_attack(draw(np.random.default_rng(seed), people), scale, "yj-likelihood")
        for seed in range(runs)
    )
    assert result.tried > 10
    assert not result.beats(0.15), result


def exact_sums(values: FloatArray, scale: FloatArray) -> Sums:
    """What an exact answer at seven λ tells, and the number of people."""
    weights = [scale * 0 + 1]
    for lam in np.linspace(-1, 2, 7).tolist():
        part = transform(scale, lam)
        weights += [part, part**2]
    sums = np.array(weights) @ shares(values, scale)
    return Sums(np.array(weights), sums, 1e-15 * np.abs(sums))


def test_the_solver_decodes_sums_that_are_exact_and_none_that_are_rounded() -> None:
    values, scale = scores(np.random.default_rng(0), 60), np.arange(28.0)
    exact = exact_sums(values, scale)
    guess = np.full(28, 60 / 28)
    result = near_a_guess(exact, guess, reduced)
    assert result is not None
    assert result.tolist() == shares(values, scale).tolist()
    per_person = np.array([part.std() for part in exact.weights]) * np.sqrt(60) / 20
    unit = np.maximum(per_person, 1e-3)
    rounded = Sums(exact.weights, (exact.values / unit).round() * unit, unit / 2)
    blurred = small_counts(near_a_guess(rounded, guess, reduced), shares(values, scale))
    assert not blurred.beats(0.15)


# --- ties in the variance of U -----------------------------------------------------------------

ARMS = ("A", "B", "C")


def tied(n: int, m: int, variance: float) -> int:
    """How many of n + m people share one value, the others having all different ones."""
    people = n + m
    ties = (1 - 3 * variance / (n * m * (people + 1))) * (people**3 - people)
    sharing = np.arange(people + 1.0)
    return int(np.abs(sharing**3 - sharing - ties).argmin())


def ties_attack(random: Random) -> Score:
    """Three arms with people at the detection limit: each pair's ties say how many of either."""
    size = 40
    truth = random.integers(2, 20, 3)
    values = [np.append(np.zeros(t), random.gamma(4, 1, size - t) + 0.1) for t in truth.tolist()]
    rows = pl.DataFrame({"crp": np.concatenate(values), "arm": np.repeat(ARMS, size)})
    answer = ask(open_center(rows), GroupRanksQuestion(variable="crp", by="arm", groups=ARMS))
    assert answer, "an honest comparison of three arms must be answered"
    variances = [pair.get("variance") for pair in answer["pairs"]]
    if None in variances:
        return small_counts(None, truth)
    ab, ac, bc = (tied(size, size, variance) for variance in variances)
    claimed = np.array([ab + ac - bc, ab + bc - ac, ac + bc - ab]) // 2
    return small_counts(claimed, truth)


def test_the_variance_of_ranks_does_not_tell_who_is_at_the_detection_limit() -> None:
    """With exact ties all 69 of 69 small counts were right."""
    result = total(ties_attack(np.random.default_rng(seed)) for seed in range(60))
    assert result.tried > 60
    assert not result.beats(0.15), result


# --- ranks together with a window --------------------------------------------------------------

WARDS = tuple("ABCDEFGHI")
STARTS = (0.05, 0.13, 0.21, 0.29, 0.68, 0.76, 0.84, 0.92)  # of the windows, as shares
WIDTH = 0.07


def placed(pair: dict[str, float], n: int, m: int) -> int | None:
    """How many of n people lie below a window of m that has none of them, if it looks like that.

    Then each is below all or above all: U is a multiple of m, and only the n people's placements
    vary. Both hold well enough after rounding.
    """
    below = (n + pair["u"] / m) / 2
    share = round(below) / n
    apart = abs(pair["effect_variance"] - share * (1 - share) / (n - 1))
    return round(below) if abs(below - round(below)) < 0.1 and apart < 1e-4 else None


def windows_attack(random: Random, chosen_by: str) -> Score:
    """One ward is ranked among eight others, each cut to a window of the variable."""
    size, other = 30, 220
    crp = random.gamma(4, 1, size + 8 * other)
    ward = np.repeat(WARDS, [size] + [other] * 8)
    rows = pl.DataFrame({"crp": crp, "nmol": crp * 9.524, "ward": ward})
    column = rows[chosen_by].to_numpy()
    windows = [np.quantile(column, (at, at + WIDTH)).round(3).tolist() for at in STARTS]
    cut = [
        f"(ward == '{name}' and {chosen_by} > {low} and {chosen_by} <= {high})"
        for name, (low, high) in zip(WARDS[1:], windows, strict=True)
    ]
    question = GroupRanksQuestion(
        variable="crp", by="ward", groups=WARDS, where=" or ".join(["ward == 'A'", *cut])
    )
    center = open_center(rows)
    honest = ask(open_center(rows), GroupRanksQuestion(variable="crp", by="ward", groups=WARDS))
    assert honest, "an honest comparison of nine wards must be answered"
    answer = ask(center, question)
    sizes = {group["group"]: group["n"] for group in answer.get("groups", ())}
    result = Score()
    for name, (low, high) in zip(WARDS[1:], windows, strict=True):
        pair = next((p for p in answer.get("pairs", ()) if {p["x"], p["y"]} == {"A", name}), None)
        part = column[:size]
        below, inside = int((part <= low).sum()), int(((part > low) & (part <= high)).sum())
        small = inside == 0 and min(below, size - below) < K
        claimed = None if pair is None else placed(pair, size, sizes[name])
        said_small = claimed is not None and min(claimed, size - claimed) < K
        result += Score(int(small and claimed == below), int(said_small), int(small))
    return result


@pytest.mark.parametrize("chosen_by", ["crp", "nmol"])
def test_ranks_beside_a_window_do_not_tell_who_is_below_it(chosen_by: str) -> None:
    """The window is cut in the variable itself, or in the same in another unit.

    Exact ranks gave 15 of 15 empty windows with small counts, in either unit (18 claims).
    """
    result = total(windows_attack(np.random.default_rng(seed), chosen_by) for seed in range(12))
    assert result.tried > 10
    assert not result.beats(0.1), result


# --- digits of a sum ---------------------------------------------------------------------------


def digits_attack(random: Random) -> Score:
    """All ages are whole but one, of a child of 7 months, which has decimals."""
    ages = random.integers(1, 90, 60).astype(np.float64)
    digits = int(random.integers(1, 4))
    fraction = int(random.integers(1, 10**digits)) / 10**digits
    ages[7] += fraction
    fed = Federation.local({"Porto": pl.DataFrame({"age": ages})}, seed=1)
    result = fed.describe("age")
    moments = [aggregate(release.payload).get("moments", ()) for release in fed.releases]
    answer = [group for groups in moments for group in groups if group["mean"] is not None]
    assert answer, f"an honest mean must be told, not {result}"
    claimed = round(answer[-1]["n"] * answer[-1]["mean"] % 1, 3)
    return Score(int(abs(claimed - fraction) < 1e-6), 1, 1)


def test_the_digits_of_a_mean_do_not_tell_the_one_person_who_has_decimals() -> None:
    """The exact mean gave the fraction in 60 of 60 runs."""
    result = total(digits_attack(np.random.default_rng(seed)) for seed in range(60))
    assert not result.beats(0.05), result


# --- a geometric scale -------------------------------------------------------------------------

TITRES: FloatArray = 4.0 ** np.arange(8, dtype=np.float64)  # fourfold dilutions


def fitting(steps: Sequence[int], people: int, first: int, second: int) -> list[list[int]]:
    """All counts that have this number of people, sum and sum of squares."""
    if not steps:
        return [[]] if people == first == second == 0 else []
    part, *others = steps
    next_step = others[0] if others else 0
    result = []
    for count in range(people + 1):
        left = people - count, first - count * part, second - count * part * part
        if left[1] < left[0] * next_step or left[2] < left[0] * next_step**2:
            continue
        if next_step and (left[1] % next_step or left[2] % next_step**2):
            continue
        result += [[count, *rest] for rest in fitting(others, *left)]
        if len(result) > 1:
            break
    return result


def titres_attack(random: Random) -> Score:
    """Mean and SD of titres: their sums have a digit for each step of the scale."""
    people = 60
    values = TITRES[np.clip(random.normal(3.5, 1.8, people).round(), 0, 7).astype(int)]
    (answer,) = ask(
        open_center(pl.DataFrame({"titre": values})), MomentsQuestion(variable="titre")
    )["moments"]
    truth = shares(values, TITRES)
    if answer["mean"] is None or answer["sd"] is None:
        return small_counts(None, truth)
    first = answer["n"] * answer["mean"]
    second = (answer["n"] - 1) * answer["sd"] ** 2 + answer["n"] * answer["mean"] ** 2
    if max(abs(total - round(total)) for total in (first, second)) > 0.01:
        return small_counts(None, truth)
    solutions = fitting([round(t) for t in TITRES], answer["n"], round(first), round(second))
    return small_counts(np.array(solutions[0]) if len(solutions) == 1 else None, truth)


def test_mean_and_sd_of_dilutions_do_not_tell_how_many_have_each() -> None:
    """Exact moments gave 175 of 202 small counts, and no wrong one."""
    result = total(titres_attack(np.random.default_rng(seed)) for seed in range(40))
    assert result.tried > 60
    assert not result.beats(0.15), result


# --- one person who dominates ------------------------------------------------------------------


def dominance_attack(random: Random) -> Score:
    """Forty people's costs, of whom one cost a thousand times as much as the others."""
    costs = random.gamma(4, 500, 40).round()
    costs[3] = random.integers(1_000_000, 9_000_000)
    (answer,) = ask(open_center(pl.DataFrame({"cost": costs})), MomentsQuestion(variable="cost"))[
        "moments"
    ]
    if answer["mean"] is None:
        return Score(tried=1)
    claimed = answer["n"] * answer["mean"]
    return Score(int(abs(claimed / costs[3] - 1) < 0.05), 1, 1)


def test_a_mean_does_not_tell_one_person_who_dominates_it() -> None:
    """It told their value within 5 % in 39 of 40 centers."""
    result = total(dominance_attack(np.random.default_rng(seed)) for seed in range(40))
    assert not result.beats(0.1), result
