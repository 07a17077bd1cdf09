"""The analyst's view: tables and descriptions over centers, and what goes wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from unpooled import Federation, Policy, Variable
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.questions import Reason, SizesQuestion, decode_answer, encode
from unpooled.center.records.keys import CenterKey
from unpooled.center.records.ledger import verify
from unpooled.errors import InputError, LedgerError, RefusedError, WhereError


def hospital(seed: int, n: int, m: int, **columns: Any) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    los = np.concatenate([random.gamma(4, 1, n), random.gamma(5, 1, m)])
    return pl.DataFrame(
        {"los": los, "arm": ["a"] * n + ["b"] * m, "age": random.integers(20, 90, n + m), **columns}
    )


@pytest.fixture
def frames() -> dict[str, pl.DataFrame]:
    return {
        "Haifa": hospital(1, 120, 100),
        "Bern": hospital(2, 60, 80),
        "Porto": hospital(3, 30, 4),
    }


@pytest.fixture
def fed(frames: dict[str, pl.DataFrame]) -> Federation:
    return Federation.local(frames, seed=1)


def refused(result: Any) -> list[tuple[str, str | None, str]]:
    return [(r.center, r.group, r.reason) for r in result.refusals]


def test_a_table_conserves_people_and_names_what_was_refused(fed: Federation) -> None:
    result = fed.table("los", by="arm")
    assert result.groups == ("a", "b")
    assert result.counts.sum(axis=1) == pytest.approx([210, 180])
    assert refused(result) == [("Porto", "b", "too-small")]
    assert list(result.people) == ["Haifa", "Bern", "Porto"]
    assert result.edges[0] == -np.inf
    assert result.rounds == 4
    answer = result.to_dict()
    assert answer["edges"][0] is None
    assert answer["groups"] == ["a", "b"]
    assert np.array(answer["counts"]).shape == (2, len(answer["edges"]) - 1)
    assert answer["refusals"] == [
        {
            "center": "Porto",
            "group": "b",
            "reason": "too-small",
            "rule": "fewer than 10 people",
        }
    ]


def test_a_description_equals_the_pooled_one(
    fed: Federation, frames: dict[str, pl.DataFrame]
) -> None:
    result = fed.describe("los", by="arm")
    frames["Porto"] = frames["Porto"].filter(pl.col("arm") == "a")
    pooled = pl.concat(frames.values())
    x, y = (pooled.filter(pl.col("arm") == g)["los"].to_numpy() for g in "ab")
    for each, values in zip(result.groups, (x, y), strict=True):
        assert each.n == len(values)
        assert each.mean is not None
        assert each.sd is not None
        near(each.mean, each.sd, values)
    assert result.welch is not None
    exact = stats.ttest_ind(y, x, equal_var=False)
    assert result.welch.statistic == pytest.approx(exact.statistic, abs=1 / 8)


def near(mean: float, sd: float, values: Any) -> None:
    """Each center rounds to 1/20 of the standard error or the next larger unit, at most 1/8."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(mean - np.mean(values)) <= error / 16
    assert abs(sd - np.std(values, ddof=1)) <= error / 16


def test_missing_values_are_counted_and_small_numbers_of_them_hidden() -> None:
    def with_missing(count: int) -> pl.DataFrame:
        los = [None] * count + [float(i) for i in range(50)]
        return pl.DataFrame({"los": los})

    fed = Federation.local({"Haifa": with_missing(12), "Bern": with_missing(3)})
    (group,) = fed.describe("los").groups
    assert (group.n, group.missing, group.missing_hidden) == (103, 12, 1)  # the three count
    assert "≥ 12" in str(fed.describe("los"))


def test_asking_twice_gives_the_same_bytes(fed: Federation) -> None:
    fed.table("los", by="arm")
    once = [release.payload for release in fed.releases]
    fed.describe("age")
    fed.table("los", by="arm")
    assert [release.payload for release in fed.releases][-len(once) :] == once


def test_max_bins_bounds_the_table(frames: dict[str, pl.DataFrame]) -> None:
    for most in (1, 2, 5, 8):
        fed = Federation.local(frames, k=10, seed=1)  # one that told no edges yet
        bins = fed.table("los", by="arm", max_bins=most).table.bins
        assert max(1, most // 2) <= bins <= most
    with pytest.raises(InputError, match="max_bins must be a whole number of at least 1, got 0"):
        fed.table("los", max_bins=0)


def test_where_selects_people_at_the_centers(
    fed: Federation, frames: dict[str, pl.DataFrame]
) -> None:
    result = fed.describe("los", where="age >= 40 and arm == 'a'")
    pooled = pl.concat(frames.values()).filter((pl.col("age") >= 40) & (pl.col("arm") == "a"))
    (group,) = result.groups
    assert group.n == len(pooled)
    assert group.mean is not None
    assert group.sd is not None
    near(group.mean, group.sd, pooled["los"].to_numpy())


@pytest.mark.parametrize("k", [5, 70])
def test_a_question_has_no_k_to_raise_or_lower(fed: Federation, k: int) -> None:
    """Raised, it was an oracle: who is refused at 12 and answered at 11 are 11 people."""
    with pytest.raises(TypeError, match="'k'"):
        fed.table("los", by="arm", k=k)  # type: ignore[call-arg]
    asked = b'{"ask":"sizes","variable":"los","k":%d}' % k
    answer = decode_answer(center().answer(asked).payload)
    assert [r.reason for r in answer.refusals] == [Reason.UNREADABLE_QUESTION]


def test_groups_read_alike_however_they_are_stored() -> None:
    values = [float(i) for i in range(40)]
    stored = {
        "integers": [1, 2] * 20,
        "floats": [1.0, 2.0] * 20,
        "text": ["1", "2"] * 20,
    }
    fed = Federation.local({k: pl.DataFrame({"v": values, "g": g}) for k, g in stored.items()})
    for groups in ((1, 2), ("1", "2"), (1.0, 2.0)):
        result = fed.table("v", by="g", groups=groups)
        assert result.counts.sum(axis=1).tolist() == [60, 60]
        assert not result.refusals


def test_a_policy_that_may_not_say_nobody_still_describes(
    frames: dict[str, pl.DataFrame],
) -> None:
    fed = Federation.local(frames, policy=Policy(ad_hoc="free", zero_cells=False))
    result = fed.describe("los", by="arm")
    assert [group.n for group in result.groups] == [210, 180]
    assert all(center.missing is None for center in result.centers)


# --- limits ------------------------------------------------------------------------------------


def test_natural_limits_are_the_declared_ones(frames: dict[str, pl.DataFrame]) -> None:
    fed = Federation.local(frames, variables={"los": Variable(lower=0)})
    edges = fed.table("los", limits="natural").edges
    assert (edges[0], edges[-1]) == (0.0, np.inf)
    with pytest.raises(RefusedError, match="no natural limits"):
        fed.table("age", limits="natural")


def test_values_outside_declared_limits_are_refused(frames: dict[str, pl.DataFrame]) -> None:
    fed = Federation.local(frames, variables={"los": Variable(lower=3)})
    with pytest.raises(RefusedError, match="outside the limits"):
        fed.describe("los")


def test_buffer_limits_need_the_policys_word(frames: dict[str, pl.DataFrame]) -> None:
    with pytest.raises(RefusedError, match="policy does not allow"):
        Federation.local(frames).table("los", limits="buffer")
    fed = Federation.local(frames, policy=Policy(ad_hoc="free", limits=("open", "buffer")))
    edges = fed.table("los", limits="buffer").edges
    pooled = pl.concat(frames.values())["los"].to_numpy()
    assert edges[0] < pooled.min() < pooled.max() < edges[-1]
    assert np.isfinite(edges).all()


# --- people ------------------------------------------------------------------------------------


def test_k_counts_people_and_not_rows() -> None:
    visits = pl.DataFrame({"v": [float(i) for i in range(40)], "id": [i // 5 for i in range(40)]})
    fed = Federation.local({"Haifa": visits}, person="id")
    with pytest.raises(RefusedError, match="more than one row per person; the policy can say"):
        fed.table("v")
    fed = Federation.local({"Haifa": visits}, person="id", per_person="mean")
    with pytest.raises(RefusedError, match="fewer than 10 people"):
        fed.table("v")


@pytest.mark.parametrize(("rule", "pick"), [("mean", np.mean), ("max", np.max), ("first", "first")])
def test_several_rows_become_one_value(rule: Any, pick: Any) -> None:
    random = np.random.default_rng(6)
    visits = pl.DataFrame({"v": random.normal(size=60), "id": [f"p{i % 20}" for i in range(60)]})
    fed = Federation.local({"Haifa": visits}, person="id", per_person=rule)
    people: dict[str, list[float]] = {}
    for value, name in visits.rows():
        people.setdefault(name, []).append(value)
    values = [v[0] if pick == "first" else pick(v) for v in people.values()]
    (group,) = fed.describe("v").groups
    assert group.n == 20
    assert group.mean is not None
    assert group.sd is not None
    near(group.mean, group.sd, values)


def test_the_person_column_cannot_be_asked_for() -> None:
    frame = pl.DataFrame({"v": [float(i) for i in range(40)], "id": range(40)})
    fed = Federation.local({"Haifa": frame}, person="id")
    for question in (
        {"variable": "id"},
        {"variable": "v", "by": "id"},
        {"variable": "v", "where": "id > 3"},
    ):
        with pytest.raises(RefusedError, match="policy does not allow"):
            fed.describe(**question)  # type: ignore[arg-type]


# --- bad input ---------------------------------------------------------------------------------


def test_an_unknown_variable_names_those_that_are_there(fed: Federation) -> None:
    with pytest.raises(
        InputError, match=r"no center has a variable 'loss'. There are: age, arm, los"
    ):
        fed.table("loss")
    with pytest.raises(InputError, match="no center has a variable 'sex'"):
        fed.table("los", by="sex")
    with pytest.raises(InputError, match="no center has a variable 'sex'"):
        fed.table("los", where="sex == 'F'")


def test_an_unknown_group_names_those_that_are_there(fed: Federation) -> None:
    with pytest.raises(InputError, match=r"in 'c' of 'arm'\. Groups with enough people: a, b"):
        fed.describe("los", by="arm", groups=("a", "c"))
    with pytest.raises(InputError, match="groups needs by"):
        fed.describe("los", groups=("a",))
    with pytest.raises(InputError, match="groups must differ"):
        fed.describe("los", by="arm", groups=("a", "a"))
    with pytest.raises(InputError, match="groups must be a list"):
        fed.describe("los", by="arm", groups="ab")


def test_a_where_that_does_not_parse_points_at_the_place(fed: Federation) -> None:
    with pytest.raises(WhereError) as caught:
        fed.describe("los", where="age >= and arm == 'a'")
    text, mark = str(caught.value).splitlines()[1:]
    assert text[mark.index("^")] == "a"
    assert caught.value.position == text.index("and") - 2


def test_a_where_that_selects_nobody(fed: Federation) -> None:
    with pytest.raises(RefusedError, match="Haifa: fewer than 10 people"):
        fed.describe("los", where="age > 200")


def test_a_where_of_the_wrong_kind(fed: Federation) -> None:
    with pytest.raises(RefusedError, match="does not fit the center's variables"):
        fed.describe("los", where="age == 'old'")


BAD_ROWS: dict[str, tuple[dict[str, list[Any]], str]] = {
    "text": ({"los": ["Smith"] * 30}, "not-numeric"),
    "all missing": ({"los": pl.Series([None] * 30, dtype=pl.Float64).to_list()}, "all-missing"),
    "infinite": ({"los": [float("inf")] + [1.0] * 30}, "not-finite"),
    "too small": ({"los": [1.0] * 9}, "too-small"),
    "empty": ({"los": []}, "too-small"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_center_with_bad_rows_is_named_and_the_others_go_on(name: str) -> None:
    columns, reason = BAD_ROWS[name]
    bad = pl.DataFrame(columns)
    if name in ("all missing", "empty"):
        bad = bad.cast({"los": pl.Float64})
    fed = Federation.local(
        {"good": pl.DataFrame({"los": [float(i) for i in range(40)]}), "bad": bad}
    )
    for result in (fed.table("los"), fed.describe("los")):
        assert [(r.center, r.reason) for r in result.refusals] == [("bad", reason)]
    everybody = b"".join(release.payload for release in fed.releases)
    assert b"Smith" not in everybody


def test_an_empty_csv_is_a_center_without_people(tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("los,arm\n")
    fed = Federation.local({"good": hospital(1, 40, 40), "empty": tmp_path / "empty.csv"})
    assert refused(fed.describe("los")) == [("empty", None, "too-small")]


def test_two_centers_of_one_name_and_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two centers are named 'a'"):
        Federation.local([tmp_path / "x" / "a.csv", tmp_path / "y" / "a.csv"])
    with pytest.raises(InputError, match="at least one center"):
        Federation.local({})


def test_a_policy_or_its_parts_but_not_both(frames: dict[str, pl.DataFrame]) -> None:
    with pytest.raises(InputError, match="either a policy or k"):
        Federation.local(frames, k=5, policy=Policy(ad_hoc="free"))
    with pytest.raises(InputError, match="k must be at least 3, got 2"):
        Federation.local(frames, k=2)
    with pytest.raises(InputError, match="per_person needs person"):
        Federation.local(frames, per_person="mean")


def test_variables_that_the_policy_does_not_allow_are_refused(
    frames: dict[str, pl.DataFrame],
) -> None:
    fed = Federation.local(frames, policy=Policy(ad_hoc="free", variables=("los",)))
    assert fed.describe("los").groups[0].n == 394
    for question in ({"by": "arm"}, {"where": "age > 3"}):
        with pytest.raises(RefusedError, match="not-allowed"):
            fed.describe("los", **question)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"variable": 3}, "variable must be the name of a variable, got 3"),
        ({"variable": "los", "by": ["arm"]}, "by must be the name of a variable"),
        ({"variable": "los", "where": 3}, "where must be a condition in text, got 3"),
        ({"variable": "los", "by": "arm", "groups": 5}, "groups must be a list of names, got 5"),
        ({"variable": "los", "by": "arm", "groups": []}, "groups must name at least one group"),
        ({"variable": "los", "max_bins": 2.5}, "max_bins must be a whole number"),
    ],
)
def test_arguments_of_the_wrong_type(
    fed: Federation, arguments: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        fed.table(**arguments)


def test_set_up_that_is_wrong_is_told_at_once(frames: dict[str, pl.DataFrame]) -> None:
    with pytest.raises(InputError, match="k: Expected `int`, got `float`"):
        Federation.local(frames, k=10.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="person must name a column of Haifa, got 'id'"):
        Federation.local(frames, person="id")
    with pytest.raises(InputError, match="per_person"):
        Federation.local(frames, person="age", per_person="median")  # type: ignore[arg-type]


def test_a_column_without_any_value_is_all_missing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("los,arm\n" + ",a\n" * 30)
    fed = Federation.local({"good": hospital(1, 40, 40), "bad": tmp_path / "a.csv"})
    assert [(r.center, r.reason) for r in fed.describe("los").refusals] == [("bad", "all-missing")]


# --- a center by itself ------------------------------------------------------------------------


def center(policy: Policy | None = None, ledger: Path | None = None) -> Center:
    key = CenterKey.from_seed(1, "Haifa")
    return Center(
        "Haifa",
        open_source(hospital(1, 60, 60)),
        policy or Policy(ad_hoc="free"),
        key,
        None,
        ledger,
    )


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (SizesQuestion(variable="los", where="los >>"), Reason.BAD_WHERE),
        (SizesQuestion(variable="los", where="los == 'x'"), Reason.BAD_WHERE),
        (SizesQuestion(variable="los", by="arm", groups=("a", "a")), Reason.UNREADABLE_QUESTION),
        (SizesQuestion(variable="los", groups=("a",)), None),
    ],
)
def test_questions_that_no_analyst_here_would_ask(
    question: SizesQuestion, reason: Reason | None
) -> None:
    answer = decode_answer(center().answer(encode(question)).payload)
    assert [r.reason for r in answer.refusals] == ([] if reason is None else [reason])
    assert (answer.aggregate is None) == (reason is not None)


@pytest.mark.parametrize(
    "question",
    [b"", b"{", b"\xff", b'{"ask":"rows"}', b'{"ask":"sizes"}', b'{"ask":"sizes","variable":3}'],
)
def test_bytes_that_are_no_question_are_refused_and_recorded(question: bytes) -> None:
    haifa = center()
    answer = decode_answer(haifa.answer(question).payload)
    assert [r.reason for r in answer.refusals] == [Reason.UNREADABLE_QUESTION]
    assert [entry.kind for entry in haifa.ledger] == ["refusal"]


def test_an_error_inside_a_center_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    haifa = center()

    def broken(*_: object) -> None:
        raise ValueError("could not convert string to float: 'Smith'")

    monkeypatch.setattr("unpooled.center.proposal.summarise.Summary.aggregate", broken)
    payload = haifa.answer(encode(SizesQuestion(variable="los"))).payload
    assert b"Smith" not in payload
    assert decode_answer(payload).refusals[0].reason is Reason.FAILED


def test_a_ledger_that_cannot_be_written_stops_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    haifa = center(ledger=tmp_path / "haifa.ledger")

    def full(*_: object) -> None:
        raise LedgerError("no space left on device")

    monkeypatch.setattr(haifa.ledger, "append", full)
    with pytest.raises(LedgerError):
        haifa.answer(encode(SizesQuestion(variable="los")))


def test_ledgers_hold_the_very_bytes_that_left(tmp_path: Path) -> None:
    fed = Federation.local({"Haifa": hospital(1, 60, 60)}, ledger=tmp_path)
    fed.table("los", by="arm")
    left = [release.payload.decode() for release in fed.releases]
    from unpooled.center.records.ledger import read

    _, entries = read(tmp_path / "Haifa.ledger")
    assert [entry.answer for entry in entries] == left
    assert verify(tmp_path / "Haifa.ledger").ok


def test_a_closed_federation_lets_go_of_its_ledgers(tmp_path: Path) -> None:
    frames = {"St. Mary/West": hospital(1, 60, 60)}
    with Federation.local(frames, ledger=tmp_path) as fed:
        fed.describe("los")
        with pytest.raises(LedgerError, match="one writer at a time"):
            Federation.local(frames, ledger=tmp_path)
    Federation.local(frames, ledger=tmp_path).close()
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".key", ".ledger", ".memory"]


class Garbage:
    """A link to one center that answers well and one that does not."""

    centers = ("Haifa", "Bern")

    def __init__(self, payload: bytes) -> None:
        self.payload = payload
        self.haifa = center()

    def ask(self, question: bytes, centers: Any, *, stewards: bool = True) -> dict[str, bytes]:
        answers = {"Haifa": self.haifa.answer(question).payload, "Bern": self.payload}
        return {name: answers[name] for name in centers}

    def close(self) -> None:
        self.haifa.ledger.close()


@pytest.mark.parametrize(
    "payload", [b"", b"\xff\x00", b"{}", b'{"aggregate":{"say":"moments","moments":[]}}']
)
def test_a_center_that_answers_garbage_is_named_and_the_others_go_on(payload: bytes) -> None:
    result = Federation(Garbage(payload)).table("los")
    assert refused(result) == [("Bern", None, "unreadable-answer")]
    assert result.counts.sum() == 120


# --- the whole chain, by properties ------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_whatever_the_centers_hold_people_are_conserved_and_cells_are_legal(
    data: st.DataObject,
) -> None:
    k = data.draw(st.integers(3, 20))
    groups = data.draw(st.integers(1, 4))
    frames = {}
    for name in "ABCDEF"[: data.draw(st.integers(1, 6))]:
        sizes = [data.draw(st.integers(0, 4 * k)) for _ in range(groups)]
        values = data.draw(st.lists(st.integers(0, 9), min_size=sum(sizes), max_size=sum(sizes)))
        arms = [str(g) for g, size in enumerate(sizes) for _ in range(size)]
        frames[name] = pl.DataFrame(
            {"v": values, "g": arms}, schema={"v": pl.Float64, "g": pl.String}
        )
    fed = Federation.local(frames, k=k)
    if all(max(f["g"].value_counts()["count"], default=0) < k for f in frames.values()):
        with pytest.raises(RefusedError, match="no center could answer"):
            fed.table("v", by="g")
        return
    result = fed.table("v", by="g")
    for g, total in zip(result.groups, result.counts.sum(axis=1), strict=True):
        sizes = [int((f["g"] == g).sum()) for f in frames.values()]
        assert total == pytest.approx(sum(n for n in sizes if n >= k))
        small = {(c, g) for c, n in zip(frames, sizes, strict=True) if 0 < n < k}
        named = {(r.center, r.group) for r in result.refusals if r.reason == "too-small"}
        assert {c for c, _ in small if c in result.people} <= {c for c, _ in named}
    for release in fed.releases:
        assert_cells_legal(release.payload, k)


def assert_cells_legal(payload: bytes, k: int) -> None:
    aggregate = decode_answer(payload).aggregate
    for group in getattr(aggregate, "groups", ()):
        assert all(count == 0 or count >= k for count in group.counts)
    for size in getattr(aggregate, "sizes", ()):
        assert size.n >= k
