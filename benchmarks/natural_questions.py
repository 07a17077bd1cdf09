"""44 natural questions on one day to four hospitals, and which of them get an answer.

    python -m benchmarks.natural_questions [book]

Synthetic cardiology: 300, 290, 200 and 120 people, heaped blood pressure, cholesterol with zeros
that mean unknown, missing values, a rare kind of chest pain, a few people without sex or smoking
status. One session, no protocol. A hospital's answer is full (F) if every group that it was asked
for came, in part (P) if some came, else it was refused (X); with the reasons. Asked in the order
of a day and in three random orders, with K = 10 and K = 5. Without `cuts`, age bands are asked for
by conditions.

With `book` a protocol is asked once (disease, sex and age band crossed; chest pain, smoking and
ward at the side), and every question goes to its book: where merged levels keep some people of a
hospital from being counted, it answers in part.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from unpooled import Book, Federation
from unpooled.errors import RefusedError, UnpooledError
from unpooled.results.provenance.record import Merged

HOSPITALS = {"Haifa": 300, "Lausanne": 290, "Bern": 200, "Porto": 120}
LEVELS = {
    "disease": ("no", "yes"),
    "sex": ("F", "M"),
    "cp": ("typical", "atypical", "other", "none"),
    "smoker": ("no", "yes"),
}
MISSING = {  # people without a value, hospital by hospital
    "trestbps": (0, 3, 2, 11),
    "chol": (3, 22, 0, 4),
    "thalach": (0, 1, 3, 14),
    "oldpeak": (0, 6, 3, 18),
    "crp": (12, 60, 25, 3),
    "sex": (0, 2, 0, 0),
    "smoker": (1, 0, 3, 0),
}
TOO_CLOSE = {"would-isolate"}  # beside earlier answers
ORDERS = (1, 2, 3)

Random = np.random.Generator


def hospital(number: int, size: int, seed: int = 1) -> pl.DataFrame:
    """The people of one hospital; three of them are older than 85."""
    random = np.random.default_rng([seed, number])
    age = np.clip(np.round(random.normal(54 + 2 * number, 9, size)), 22, 85)
    age[random.choice(size, 3, replace=False)] = (86, 88, 91)
    male = random.random(size) < 0.66
    ill = random.random(size) < 1 / (1 + np.exp(-(-0.4 + 0.05 * (age - 55) + 0.8 * male)))
    typical = random.choice(4, size, p=[0.05, 0.19, 0.29, 0.47])
    smoker = random.random(size) < 0.25 + 0.15 * male
    pressure = random.normal(126 + 0.2 * (age - 50) + 3 * ill, 16, size)
    tens = random.random(size) < 0.7
    chol = np.round(random.normal(240 - 8 * male + 8 * ill, 50, size))
    unknown = random.random(size) < (0.35 if number == 2 else 0.0)
    depression = np.where(random.random(size) < 0.4, 0.0, random.gamma(1.3, 0.8 + 0.5 * ill, size))
    columns: dict[str, Sequence[object]] = {
        "age": age.astype(int).tolist(),
        "sex": np.where(male, "M", "F").tolist(),
        "disease": np.where(ill, "yes", "no").tolist(),
        "cp": [LEVELS["cp"][kind] for kind in typical],
        "smoker": np.where(smoker, "yes", "no").tolist(),
        "ward": random.choice(["cardiology", "medicine", "surgery"], size).tolist(),
        "trestbps": np.where(tens, 10 * np.round(pressure / 10), np.round(pressure)).tolist(),
        "chol": np.where(unknown, 0.0, np.maximum(chol, 90)).tolist(),
        "thalach": np.round(random.normal(205 - age - 12 * ill, 19, size)).tolist(),
        "oldpeak": np.round(depression, 1).tolist(),
        "crp": np.round(random.lognormal(0.8 + 0.3 * ill, 0.9, size), 2).tolist(),
    }
    return pl.DataFrame(
        {name: _without(part, name, number, random) for name, part in columns.items()}
    )


def _without(values: Sequence[object], name: str, number: int, random: Random) -> list[object]:
    """The values, of which some are missing."""
    gone = set(
        random.choice(len(values), MISSING.get(name, (0,) * 4)[number], replace=False).tolist()
    )
    return [None if i in gone else value for i, value in enumerate(values)]


def federation(k: int, seed: int = 1) -> Federation:
    """The four hospitals."""
    people = {name: hospital(i, n, seed) for i, (name, n) in enumerate(HOSPITALS.items())}
    return Federation.local(people, k=k, seed=seed)


@dataclass(frozen=True, slots=True)
class Asked:
    """One question: a method of `Federation`, its variable, and the rest."""

    what: str
    variable: str
    by: str | None = None
    where: str | None = None
    method: str | None = None
    cuts: tuple[float, ...] | None = None

    def __str__(self) -> str:
        by = "" if self.by is None else f" by {self.by}"
        cuts = "" if self.cuts is None else f" cut at {', '.join(f'{cut:g}' for cut in self.cuts)}"
        where = "" if self.where is None else f", {self.where}"
        return f"{self.what} {self.variable}{by}{cuts}{where}"

    @property
    def groups(self) -> tuple[str | None, ...]:
        """Which groups are asked for; None is everybody, or groups that have no name yet."""
        return (None,) if self.by is None else LEVELS.get(self.by, (None,))

    def settled(self) -> tuple["Asked", ...]:
        """The same without `cuts`, where the federation has no such thing: a band each."""
        if self.cuts is None or "cuts" in inspect.signature(Federation.describe).parameters:
            return (self,)
        cut = f"{self.cuts[0]:g}"
        bands = f"{self.by} < {cut}", f"{self.by} >= {cut}"
        return tuple(Asked("describe", self.variable, where=band) for band in bands)

    def ask(self, fed: Federation) -> Any:
        """Its result."""
        more: dict[str, Any] = {"method": self.method, "cuts": self.cuts, "where": self.where}
        if self.by is not None:
            more["by"] = self.by
            more["groups"] = LEVELS.get(self.by)
        call: Callable[..., Any] = getattr(fed, self.what)
        return call(
            self.variable, **{name: part for name, part in more.items() if part is not None}
        )


def questions() -> tuple[Asked, ...]:
    """What a researcher would ask, in the order of a day."""
    bands, parallel = (60.0,), "parallel"
    return (
        *(Asked("describe", name) for name in ("trestbps", "chol", "thalach", "oldpeak", "crp")),
        *(Asked("quantiles", name, method=parallel) for name in ("trestbps", "thalach", "crp")),
        *(Asked("table", name, method=parallel) for name in ("chol", "oldpeak")),
        *(Asked("compare", name, "disease") for name in ("trestbps", "chol", "thalach", "oldpeak")),
        Asked("compare", "crp", "disease", method=parallel),
        *(Asked("describe", name, "disease") for name in ("thalach", "crp")),
        *(Asked("quantiles", name, "disease", method=parallel) for name in ("thalach", "crp")),
        Asked("table", "trestbps", "disease", method=parallel),
        Asked("describe", "chol", "sex"),
        *(Asked("compare", name, "sex") for name in ("chol", "oldpeak")),
        Asked("compare", "thalach", "sex", method=parallel),
        Asked("quantiles", "crp", "sex", method=parallel),
        Asked("describe", "oldpeak", "cp"),
        *(Asked("compare", name, "cp") for name in ("oldpeak", "trestbps")),
        Asked("describe", "crp", "smoker"),
        *(Asked("compare", name, "smoker") for name in ("crp", "trestbps")),
        Asked("compare", "thalach", "disease", "sex == 'F'"),
        Asked("compare", "thalach", "disease", "sex == 'M'"),
        Asked("describe", "crp", where="sex == 'F'"),
        Asked("describe", "crp", where="sex == 'M'"),
        Asked("quantiles", "chol", where="sex == 'F'", method=parallel),
        Asked("compare", "thalach", "disease", "age >= 60"),
        Asked("compare", "thalach", "disease", "age < 60"),
        Asked("describe", "oldpeak", where="age >= 60"),
        Asked("describe", "oldpeak", where="age < 60"),
        Asked("describe", "trestbps", "age", cuts=bands),
        Asked("compare", "chol", "age", cuts=bands),
        Asked("compare", "crp", "disease", "age >= 18"),  # leaves out nobody
        Asked("describe", "trestbps", where="age <= 85"),  # leaves out three people
    )


@dataclass(frozen=True, slots=True)
class Fared:
    """How one hospital answered: full, in part or refused, and why."""

    how: str  # F, P or X
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((self.how, *self.reasons)) if self.reasons else self.how


def fared(asked: Asked, fed: Federation) -> dict[str, Fared]:
    """How each hospital answered one question; of several bands, all together."""
    parts = [_fared(part, fed) for part in asked.settled()]
    return {name: _together([part[name] for part in parts]) for name in HOSPITALS}


def _fared(asked: Asked, fed: Federation) -> dict[str, Fared]:
    try:
        refusals = asked.ask(fed).refusals
    except RefusedError as error:
        refusals = error.refusals
    except UnpooledError as error:
        return {name: Fared("X", (type(error).__name__,)) for name in HOSPITALS}
    return {name: _judged(asked, [r for r in refusals if r.center == name]) for name in HOSPITALS}


def _judged(asked: Asked, refusals: Sequence[Any]) -> Fared:
    reasons = tuple(sorted({refusal.reason for refusal in refusals}))
    gone = {refusal.group for refusal in refusals}
    if not gone:
        return Fared("F", ())
    left = set() if None in gone else set(asked.groups) - gone
    enough = 2 if asked.what == "compare" else 1  # one group is compared with nothing
    return Fared("P" if len(left) >= enough else "X", reasons)


def _together(parts: Sequence[Fared]) -> Fared:
    how = {part.how for part in parts}
    reasons = sorted({reason for part in parts for reason in part.reasons})
    return Fared(how.pop() if len(how) == 1 else "P", tuple(reasons))


def day(k: int, order: Sequence[Asked]) -> dict[Asked, dict[str, Fared]]:
    """All questions in this order, in one session."""
    with federation(k) as fed:
        return {asked: fared(asked, fed) for asked in order}


def orders() -> Iterator[tuple[str, list[Asked]]]:
    """The order of a day, and random ones."""
    yield "as listed", list(questions())
    for seed in ORDERS:
        mixed = np.random.default_rng(seed).permutation(len(questions()))
        yield f"random {seed}", [questions()[i] for i in mixed]


def _print_table(answers: Mapping[Asked, Mapping[str, Fared]], k: int) -> None:
    print(f"K = {k}, as listed (F full, P in part, X refused)\n")
    print(f"{'':>2}  {'question':<44} " + " ".join(f"{name:<26}" for name in HOSPITALS).rstrip())
    for number, (asked, by_hospital) in enumerate(answers.items(), 1):
        cells = " ".join(f"{by_hospital[name]!s:<26}" for name in HOSPITALS)
        print(f"{number:>2}  {asked!s:<44} {cells}".rstrip(), flush=True)
    print()


def _print_totals(k: int, name: str, answers: Mapping[Asked, Mapping[str, Fared]]) -> None:
    every = [part for by_hospital in answers.values() for part in by_hospital.values()]
    how = Counter(part.how for part in every)
    untouched = sum(all(f.how == "F" for f in part.values()) for part in answers.values())
    close = sum(bool(TOO_CLOSE & set(part.reasons)) for part in every)
    reasons = Counter(reason for part in every for reason in part.reasons)
    why = ", ".join(f"{reason} {times}" for reason, times in reasons.most_common())
    counts = f"{how['F']:>5} {how['P']:>5} {how['X']:>5} {untouched:>10} {close:>10}"
    print(f"{k:>3} {name:<10} {counts}  {why}")


# --- from the book of a protocol ----------------------------------------------------------------

PROTOCOL: dict[str, Any] = {
    "title": "A day of questions",
    "groups": [
        {"name": "disease", "levels": ["no", "yes"]},
        {"name": "sex", "levels": ["F", "M"]},
        {"name": "age_band", "of": "age", "cuts": [60], "labels": ["under 60", "60 and over"]},
        {"name": "cp", "levels": list(LEVELS["cp"]), "with": []},
        {"name": "smoker", "levels": ["no", "yes"], "with": []},
        {"name": "ward", "with": []},
    ],
    "variables": {
        name: {"kind": "number"} for name in ("trestbps", "chol", "thalach", "oldpeak", "crp")
    },
}
WHERE = {
    "age >= 60": {"age_band": "60 and over"},
    "age < 60": {"age_band": "under 60"},
    "sex == 'F'": {"sex": "F"},
    "sex == 'M'": {"sex": "M"},
}


def from_book(asked: Asked, book: Book) -> dict[str, Fared]:
    """How each hospital answers one question in the book."""
    more: dict[str, Any] = {}
    if asked.where is not None:
        more["where"] = WHERE.get(asked.where, asked.where)
    if asked.by is not None:
        more["by"] = "age_band" if asked.cuts is not None else asked.by
    if asked.method is not None and asked.what != "table":
        more["method"] = asked.method
    try:
        result = getattr(book, asked.what)(asked.variable, **more)
    except UnpooledError as error:
        return {name: Fared("X", (type(error).__name__,)) for name in HOSPITALS}
    fared_by = {}
    for name in HOSPITALS:
        refusals = [refusal for refusal in result.refusals if refusal.center == name]
        merged = [note for note in result.record.merged if getattr(note, "center", "") == name]
        merged = [note for note in merged if isinstance(note, Merged)]
        judged = _judged(asked, refusals)
        left_out = sum(note.people for note in merged)
        if judged.how == "F" and merged:
            judged = Fared("X" if left_out >= HOSPITALS[name] - 1 else "P", (f"-{left_out}",))
        fared_by[name] = judged
    return fared_by


def book_of(k: int) -> Book:
    """The book of the four hospitals."""
    with federation(k) as fed:
        book = fed.run(PROTOCOL)
        print(f"K = {k}: one protocol, {len(fed.releases)} releases, one from each hospital\n")
    return book


def print_book(k: int) -> None:
    """All questions from one book."""
    book = book_of(k)
    answers = {asked: from_book(asked, book) for asked in questions()}
    _print_table(answers, k)
    each = [f.how for by_hospital in answers.values() for f in by_hospital.values()]
    answered = sum(any(f.how != "X" for f in part.values()) for part in answers.values())
    print(f"questions answered: {answered} of {len(answers)}")
    print(f"hospitals' answers: {Counter(each)} of {len(each)}")


def main() -> None:
    """Ask them in each order with both K, and print how they fared."""
    if sys.argv[1:] == ["book"]:
        for k in (10, 5):
            print_book(k)
        return
    days = {(k, name): day(k, order) for k in (10, 5) for name, order in orders()}
    for k in (10, 5):
        _print_table(days[k, "as listed"], k)
    answers = len(questions()) * len(HOSPITALS)
    print(f"Of {answers} answers ({len(questions())} questions, {len(HOSPITALS)} hospitals):\n")
    heads = f"{'F':>5} {'P':>5} {'X':>5} {'F of all 4':>10} {'too close':>10}"
    print(f"{'K':>3} {'order':<10} {heads}  reasons")
    for (k, name), part in days.items():
        _print_totals(k, name, part)


if __name__ == "__main__":
    main()
