"""A protocol is asked once; every analysis comes from its book, near to the pooled one."""

import json
from collections.abc import Iterator
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas
import polars as pl
import pytest
from scipy.stats import mannwhitneyu

from unpooled import Book, Federation, read_protocol
from unpooled.center.questions import Refusal
from unpooled.center.questions.refusals import Reason
from unpooled.center.records.ledger import read
from unpooled.errors import InputError, RefusedError
from unpooled.maths.ranks.mann_whitney import rank_statistics
from unpooled.results.numbers.quantiles import QuantilesResult

PLAN = {
    "title": "CRP in sepsis",
    "groups": [
        {"name": "arm", "levels": ["control", "patient"]},
        {"name": "sex", "levels": ["F", "M"]},
        {"name": "age_band", "of": "age", "cuts": [50, 65]},
        {"name": "ward", "levels": ["ICU", "surgery"], "with": ["arm"]},
    ],
    "variables": {
        "crp": {"unit": "mg/L", "label": "C-reactive protein"},
        "age": {"unit": "years"},
        "stage": {"levels": ["I", "II", "III"], "ordered": True},
    },
    "survival": [{"time": "months", "event": "died", "horizon": 60}],
}
SIZES = {"Haifa": 600, "Lausanne": 400, "Milan": 300, "Oslo": 160}


def hospital(name: str, n: int, seed: int = 3) -> pandas.DataFrame:
    rng = np.random.default_rng([seed, n])
    arm = rng.choice(["control", "patient"], n)
    sex = rng.choice(["F", "M"], n)
    age = rng.normal(60, 12, n).round()
    level = 1.5 + 0.35 * (arm == "patient") + 0.2 * (sex == "M") + 0.01 * (age - 60)
    lives = rng.weibull(1.3, n) * np.where(arm == "patient", 42.0, 75.0)
    ends = np.minimum(rng.uniform(12, 90, n), 60)
    return pandas.DataFrame(
        {
            "center": name,
            "arm": arm,
            "sex": sex,
            "age": age,
            "ward": rng.choice(["ICU", "surgery", "medicine"], n, p=[0.4, 0.5, 0.1]),
            "crp": np.exp(rng.normal(level, 0.75)).round(2),
            "stage": rng.choice(["I", "II", "III"], n, p=[0.4, 0.35, 0.25]),
            "months": np.minimum(lives, ends).round(1),
            "died": (lives <= ends).astype(int),
        }
    )


EVERYBODY = pandas.concat([hospital(name, n) for name, n in SIZES.items()], ignore_index=True)


@pytest.fixture(scope="module")
def fed() -> Iterator[Federation]:
    with Federation.split(EVERYBODY, center="center", seed=5) as opened:
        yield opened


@pytest.fixture(scope="module")
def book(fed: Federation) -> Book:
    return fed.run(PLAN)


def of_arm(arm: str, frame: pandas.DataFrame = EVERYBODY) -> pandas.DataFrame:
    return frame[frame["arm"] == arm]


def test_one_round_answers_everything(fed: Federation, book: Book) -> None:
    before = len(fed.releases)
    assert book.centers == tuple(SIZES)
    assert book.missing == ()
    book.describe("crp", by="arm")
    book.compare("crp", by="arm")
    book.quantiles("age", by="sex")
    book.survival("months", by="arm")
    book.crosstab("stage", by="arm")
    assert len(fed.releases) == before
    assert before == len(SIZES)  # one answer a center


def test_counts_means_and_sds_are_those_of_the_pooled_people(book: Book) -> None:
    result = book.describe("crp", by="arm")
    for group in result.groups:
        people = of_arm(group.group)["crp"]
        assert group.n == len(people)
        assert group.mean == pytest.approx(people.mean(), abs=0.35 * people.sem())
        assert group.sd == pytest.approx(people.std(), rel=0.12)  # some SDs are withheld


def test_people_are_placed_with_the_mean_that_their_block_has() -> None:
    """Cells tell no means; without these of the block, people stand by .1 to .3 SE elsewhere."""
    people = hospital("Bern", 900)
    with Federation.local({"Bern": people}, seed=2) as fed:
        book = fed.run({**PLAN, "groups": [{"name": "arm"}, {"name": "sex"}]})
    shelf = book._shelf("crp", next(book.protocol.families()))
    for (_, block), placed in shelf.placed.items():
        (arm,), (sex,) = json.loads(block)
        crp = people[(people["arm"] == arm) & (people["sex"] == sex)]["crp"]
        mean = placed.weights @ placed.values / placed.people
        assert placed.people == pytest.approx(len(crp))
        assert abs(mean - crp.mean()) <= 0.06 * crp.sem()


def test_categories_equal_the_pooled_table_where_nothing_is_merged(book: Book) -> None:
    result = book.crosstab("stage", by="arm")
    pooled = pandas.crosstab(EVERYBODY["arm"], EVERYBODY["stage"]).to_numpy()
    assert (result.bounds.low <= pooled).all()
    assert (pooled <= result.bounds.high).all()
    sexes = book.crosstab("sex", by="arm")  # a grouping is a category too
    assert (sexes.bounds.low == pandas.crosstab(EVERYBODY["arm"], EVERYBODY["sex"])).all(axis=None)
    assert result.ordered  # as the protocol says


@pytest.mark.parametrize("variable", ["crp", "age"])
def test_quantiles_are_near_the_pooled_ones(book: Book, variable: str) -> None:
    result = book.quantiles(variable, [0.25, 0.5, 0.75], by="arm")
    assert isinstance(result, QuantilesResult)
    for quantile in result.quantiles:
        assert quantile.estimate is not None
        assert quantile.low is not None
        assert quantile.high is not None
        people = np.sort(of_arm(quantile.group)[variable].to_numpy())
        n, p = len(people), quantile.p
        spread = np.sqrt(p * (1 - p) / n)
        low, high = np.quantile(people, [p - spread, p + spread])
        unit = 1.0 if variable == "age" else 0.0  # whole years
        assert abs(quantile.estimate - np.quantile(people, p)) <= max(0.35 * (high - low), unit)
        assert quantile.low <= quantile.estimate <= quantile.high


@pytest.mark.parametrize("sex", ["F", "M"])
@pytest.mark.parametrize("variable", ["crp", "age"])
def test_effects_of_subgroups_are_near_the_pooled_ones(book: Book, variable: str, sex: str) -> None:
    result = book.compare(variable, by="arm", where={"sex": sex})
    exact = {
        center: rank_statistics(
            *(np.sort(of_arm(arm, part)[variable].to_numpy(float)) for arm in result.groups)
        )
        for center, part in EVERYBODY[EVERYBODY["sex"] == sex].groupby("center")
    }
    assert [c.center for c in result.centers] == list(SIZES)
    for center in result.centers:
        part, truth = center.pairs["control", "patient"], exact[center.center]
        assert (part.n_x, part.n_y) == (truth.n_x, truth.n_y)
        assert abs(part.effect - truth.effect) <= 0.4 * np.sqrt(truth.effect_variance)


def test_a_comparison_within_strata_is_van_elterens(book: Book) -> None:
    result = book.compare("crp", by="arm", strata=["sex", "age_band"])
    names = ["under 50", "50 to under 65", "65 and over"]
    band = pandas.cut(EVERYBODY["age"], [0, 49.9, 64.9, 200], labels=names).astype(str)
    answer = {(unit.center, unit.stratum) for unit in result.centers}
    weighted = squares = 0.0
    for (center, sex, age), part in EVERYBODY.groupby(["center", "sex", band]):
        if (center, f"{sex}, {age}") not in answer:
            continue  # some level is merged there: they are left out
        x, y = (of_arm(arm, part)["crp"] for arm in ("control", "patient"))
        u = 2 * mannwhitneyu(y, x).statistic - len(x) * len(y)
        variance = len(x) * len(y) * (len(part) + 1) / 3
        weighted += len(x) * len(y) * u / variance
        squares += (len(x) * len(y)) ** 2 / variance
    assert result.strata == ("sex", "age_band")
    assert result.test.statistic == pytest.approx(weighted / np.sqrt(squares), abs=0.25)
    assert "within sex and age_band" in result.title


def test_several_groups_and_combinations_of_groupings(book: Book) -> None:
    result = book.compare("crp", by=["arm", "sex"])
    assert result.groups == tuple(f"{a}, {s}" for a, s in product(("control", "patient"), "FM"))
    assert result.test_name == "Kruskal-Wallis" or result.test_name.lower() == "kruskal-wallis"
    rising = book.compare("crp", by="age_band", ordered=True)
    assert rising.groups == ("under 50", "50 to under 65", "65 and over")
    assert rising.log10_p < -1


@pytest.mark.parametrize(
    "where",
    [
        {"sex": "F", "age_band": "65 and over"},
        "sex == 'F' and age >= 65",
        "age_band == '65 and over' and sex in ('F')",
        "not (sex == 'M' or age < 65)",
    ],
)
def test_conditions_over_groupings_mean_the_same_people(book: Book, where: Any) -> None:
    result = book.describe("crp", by="arm", where=where)
    people = EVERYBODY[(EVERYBODY["sex"] == "F") & (EVERYBODY["age"] >= 65)]
    merged = sum(note.people for note in result.record.merged if "left out" in note.note)
    assert sum(group.n for group in result.groups) + merged >= len(people)
    assert sum(group.n for group in result.groups) <= len(people)


def test_whom_a_merge_hides_is_said(book: Book) -> None:
    result = book.describe("crp", by="ward")
    left_out = [note for note in result.record.notes if "left out" in note]
    assert left_out
    assert sum(g.n for g in result.groups) + sum(
        note.people for note in result.record.merged if "left out" in note.note
    ) == len(EVERYBODY)


def test_a_side_grouping_that_is_a_variable_too_is_told_by_its_own_blocks() -> None:
    """As a variable by other blocks its levels are merged; who is in which ward is told first."""
    wards = {"name": "ward", "levels": ["ICU", "surgery", "medicine"], "with": ["arm"]}
    variables = {"crp": {}, "ward": {"levels": ["ICU", "surgery", "medicine"]}, "months": {}}
    plan = {**PLAN, "groups": [*PLAN["groups"][:3], wards], "variables": variables}  # type: ignore[index]
    people = hospital("Bern", 400)
    people["ward"] = np.random.default_rng(1).choice(["ICU", "surgery", "medicine"], len(people))
    with Federation.local({"Bern": people}, seed=2) as fed:
        book = fed.run(plan)
    table = book.crosstab("ward", by="arm")
    truth = pandas.crosstab(people["arm"], people["ward"])[["ICU", "surgery", "medicine"]]
    assert (table.bounds.low == truth).all(axis=None)
    assert (table.bounds.high == truth).all(axis=None)
    assert book.variables == ("crp", "ward")  # months are an outcome's times
    assert "months" not in str(book.table1(by="arm"))


def test_survival_by_arm_within_sex(book: Book) -> None:
    result = book.survival("months", by="arm", strata="sex", at=[12, 36])
    assert result.strata == ("sex",)
    assert result.log_rank is not None
    assert result.log_rank.log_p < np.log(1e-6)
    assert book.survival("months", "died", by="arm", where="sex == 'F'").arms


# --- the file -----------------------------------------------------------------------------------


def test_a_book_is_the_same_after_it_was_saved(book: Book, tmp_path: Path) -> None:
    again = Book.open(book.save(tmp_path / "sepsis.book"))
    assert again.protocol == book.protocol
    assert again.centers == book.centers
    assert [r.payload for r in again.releases] == [r.payload for r in book.releases]
    assert again.compare("crp", by="arm").to_dict() == book.compare("crp", by="arm").to_dict()
    assert str(again) == str(book)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda raw: raw.replace(b'\\"count\\":', b'\\"count\\": ', 1), "was changed"),
        (lambda raw: raw.replace(b"CRP in sepsis", b"CRP in health"), "changed after it was"),
        (lambda raw: raw[: len(raw) // 2], "damaged"),
        (lambda raw: b"PK" + raw, "is no book"),
        (lambda raw: b"", "is no book"),
    ],
)
def test_a_damaged_book_says_so(book: Book, tmp_path: Path, damage: Any, words: str) -> None:
    path = book.save(tmp_path / "sepsis.book")
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match=words):
        Book.open(path)
    with pytest.raises(InputError, match="cannot be read"):
        Book.open(tmp_path / "nowhere.book")


def test_the_same_protocol_again_gives_the_same_bytes(fed: Federation, book: Book) -> None:
    again = fed.run(read_protocol(PLAN))
    assert [r.payload for r in again.releases] == [r.payload for r in book.releases]


def test_a_book_goes_on_where_a_center_was_missing(fed: Federation, book: Book) -> None:
    late = [r for r in book.releases if r.center != "Oslo"]
    down = [("Oslo", Refusal(reason=Reason.NO_ANSWER))]
    partial = Book(book.protocol, late, down, tuple(SIZES))
    assert partial.missing == ("Oslo",)
    assert partial.refusals[0].center == "Oslo"
    result = partial.describe("crp", by="arm")
    assert "Oslo is not in the book" in str(result)
    whole = fed.run(PLAN, into=partial)
    assert whole.missing == ()
    assert set(whole.centers) == set(SIZES)
    assert fed.run(PLAN, into=whole) is whole


def test_books_of_different_protocols_stay_apart(fed: Federation, book: Book) -> None:
    other = {**PLAN, "title": "Another"}
    with pytest.raises(InputError, match="another protocol"):
        fed.run(other, into=book)
    changed = Book(read_protocol(other), [])
    with pytest.raises(InputError, match="different protocols"):
        book.merged_with(changed)
    with pytest.raises(InputError, match="answered another protocol"):
        Book(changed.protocol, book.releases)


def test_two_books_of_one_center_must_say_the_same(book: Book) -> None:
    with Federation.local({"Haifa": hospital("Haifa", 600)}) as one:
        other = one.run(PLAN)
    with pytest.raises(InputError, match=r"both books have Haifa.*signed by another key"):
        book.merged_with(other)
    assert book.merged_with(book).centers == book.centers


def test_an_answer_of_another_center_is_not_taken_for_this_ones(book: Book) -> None:
    first, other, *_ = book.releases
    swapped = Book(book.protocol, [first.__class__("Haifa", first.question, other.payload)])
    assert swapped.centers == ()
    assert [(r.center, r.reason) for r in swapped.refusals] == [("Haifa", Reason.WRONG_SIGNATURE)]


def test_a_book_goes_on_with_its_own_centers_alone(book: Book) -> None:
    with (
        Federation.local({"Bern": hospital("Bern", 200)}) as others,
        pytest.raises(InputError, match=r"book of other centers, Haifa, .*; these are Bern"),
    ):
        others.run(PLAN, into=book)


def _sealed(content: dict[str, Any]) -> bytes:
    """A book's file, as somebody writes it who knows the format and has no center's key."""
    for page in content["pages"]:
        page["sha256"] = sha256(page["payload"].encode()).hexdigest()
    body = msgspec.json.encode(content)
    return body + b"\n" + sha256(body).hexdigest().encode() + b"\n"


def _digit(content: dict[str, Any]) -> None:
    page = content["pages"][1]
    page["payload"] = page["payload"].replace('"count":', '"count":1', 1)


def _level(content: dict[str, Any]) -> None:
    content["protocol"]["groups"][1]["levels"] = ["M", "F"]


def _swap(content: dict[str, Any]) -> None:
    first, second, *_ = content["pages"]
    first["payload"], second["payload"] = second["payload"], first["payload"]


def _unsigned(content: dict[str, Any]) -> None:
    page = content["pages"][2]
    answer = json.loads(page["payload"])
    answer["aggregate"]["signatures"] = []
    page["payload"] = json.dumps(answer, separators=(",", ":"))


@pytest.mark.parametrize(
    ("change", "center"),
    [(_digit, "Lausanne"), (_level, "Haifa"), (_swap, "Haifa"), (_unsigned, "Milan")],
)
def test_who_has_no_key_cannot_change_a_book(
    book: Book, tmp_path: Path, change: Any, center: str
) -> None:
    path = book.save(tmp_path / "sepsis.book")
    content = json.loads(path.read_bytes().splitlines()[0])
    path.write_bytes(_sealed(content))
    assert Book.open(path).centers == book.centers  # the format is known
    change(content)
    path.write_bytes(_sealed(content))
    with pytest.raises(InputError, match=f"what {center} said, or the protocol, was changed"):
        Book.open(path)


def test_a_book_names_the_keys_of_the_centers_ledgers(tmp_path: Path) -> None:
    with Federation.local({"Bern": hospital("Bern", 200)}, ledger=tmp_path) as fed:
        book = fed.run(PLAN)
    header, _ = read(next(tmp_path.glob("*Bern*.ledger")))
    assert book.keys == {"Bern": (header.public_key,)}


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda b: b.compare("crp", by="amr"), "by: there is no grouping 'amr'. Hint: did you"),
        (lambda b: b.compare("cpr", by="arm"), "has no variable 'cpr'. Hint: did you mean 'crp'"),
        (lambda b: b.describe("stage", by="arm"), "is a category in this book. Hint: book.crosst"),
        (lambda b: b.crosstab("crp", by="arm"), "is a number in this book"),
        (lambda b: b.describe("sex"), "is a grouping of the protocol"),
        (lambda b: b.describe("months"), "is the time of an outcome"),
        (lambda b: b.describe("crp", by=["ward", "sex"]), "does not cross with each other"),
        (lambda b: b.describe("crp", where="age >= 60"), "needs a cut at 60; age_band is cut at"),
        (lambda b: b.describe("crp", where="age > 65"), "Hint: ask < or >="),
        (lambda b: b.describe("crp", where="crp > 5"), "no grouping 'crp'"),
        (lambda b: b.describe("crp", where={"sex": "f"}), "no level 'f' of sex"),
        (lambda b: b.describe("crp", where="sex == 'G'"), "there is no level 'G'"),
        (lambda b: b.compare("crp", by="arm", groups=["a", "b"]), "no center tells 'a', 'b'"),
        (lambda b: b.compare("crp", by="arm", strata="arm"), "by and strata must differ"),
        (lambda b: b.compare("crp", by="arm", method="tabel"), "no method 'tabel'"),
        (lambda b: b.quantiles("crp", 25), "quantile"),
        (lambda b: b.survival("weeks"), "There are: months with event='died'"),
        (
            lambda b: b.survival("months", by="arm", covariates="wing"),
            "covariates: there is no grouping 'wing'",
        ),
        (
            lambda b: b.survival("months", by="arm", strata="sex", covariates="sex"),
            "covariates and strata must differ, got 'sex' in both",
        ),
        (
            lambda b: b.survival("months", by="arm", covariates=["sex", "sex"]),
            "covariates must differ, got sex, sex",
        ),
        (lambda b: b.crosstab("arm", by="arm"), "by and variable must differ"),
    ],
)
def test_what_is_wrong_is_said_with_a_way_on(book: Book, ask: Any, words: str) -> None:
    with pytest.raises(InputError) as error:
        ask(book)
    assert words in str(error.value)


def test_results_say_what_json_says(book: Book) -> None:
    for each in (
        book.describe("crp", by="arm"),
        book.crosstab("stage", by="arm"),
        book.quantiles("crp"),
        book.compare("crp", by="arm"),
    ):
        assert json.loads(json.dumps(each.to_dict(), allow_nan=False))
        assert each.title in str(each)


def test_levels_that_nobody_has_are_said(fed: Federation) -> None:
    groups = [{"name": "arm", "levels": ["Control", "Patient"]}]
    misspelled = fed.for_another().run({"title": "t", "groups": groups, "variables": {"crp": {}}})
    with pytest.raises(InputError, match=r"by themselves|none of the protocol"):
        misspelled.compare("crp", by="arm")


def test_a_book_that_nobody_answered_says_why() -> None:
    few = pandas.concat([hospital("Bern", 9), hospital("Basel", 8)])
    with Federation.split(few, center="center") as fed:
        book = fed.run(PLAN)
        with pytest.raises((RefusedError, InputError)):
            book.describe("crp", by="arm")


def test_levels_may_be_truth_values() -> None:
    rows = pl.DataFrame({"crp": np.arange(60.0), "smoker": [True, False] * 30})
    levels = {"name": "smoker", "levels": [False, True]}
    book = Federation.local({"Haifa": rows}).run(
        {"title": "smoking", "groups": [levels], "variables": {"crp": {}}}
    )
    assert list(book.describe("crp", by="smoker").to_frame()["n"]) == [30, 30]
