"""Survival: what its tables, flags and numbers at risk give away, with and without each rule."""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.privacy.linear_attack import fewest_people
from tests.privacy.overheard import overheard
from tests.survival_data import trial
from unpooled import Federation
from unpooled.analyses.conversation import Coordinator
from unpooled.analyses.request import Request
from unpooled.analyses.survival import OutcomeRequest, run_survival
from unpooled.center import Center
from unpooled.center import center as centers
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.proposal.summarise import Summary, cell_table
from unpooled.center.questions import (
    Answer,
    CellTable,
    FollowUpQuestion,
    GroupStatuses,
    LatticeQuestion,
    MomentsQuestion,
    Question,
    Reason,
    Refusal,
    SizesQuestion,
    SurvivalQuestion,
    SurvivalTables,
    TableQuestion,
    decode_answer,
    encode,
    message,
)
from unpooled.center.records.keys import CenterKey
from unpooled.center.rule import memory
from unpooled.center.rule.disclosure import Told
from unpooled.center.rule.memory import Memory
from unpooled.maths.arrays import FloatArray
from unpooled.maths.lattice import cutting
from unpooled.maths.lattice.lattice import Lattice

K = 10
BY_ARM = SurvivalQuestion(variable="months", event="died", by="arm", horizon=60.0)
OVERALL = SurvivalQuestion(variable="months", event="died", horizon=60.0)
SHORTER = SurvivalQuestion(variable="months", event="died", by="arm", horizon=30.0)


def center(rows: pl.DataFrame, ledger: Path | None = None, **policy: Any) -> Center:
    key = CenterKey.from_seed(1, "Haifa")
    return Center("Haifa", open_source(rows), Policy(ad_hoc="free", **policy), key, {}, ledger)


def ask(haifa: Center, question: Question) -> Answer:
    return decode_answer(haifa.answer(encode(question)).payload)


def statuses(answer: Answer) -> dict[str, GroupStatuses]:
    assert isinstance(answer.aggregate, SurvivalTables)
    return {group.group: group for group in answer.aggregate.groups}


def tables(group: GroupStatuses) -> list[CellTable]:
    return [table for _, table in group.tables()]


def without_the_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on whatever is asked may be told."""
    monkeypatch.setattr(Told, "tell", lambda before, *_, **__: before)
    monkeypatch.setattr(Center, "_nearest", lambda *_: [])


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in numbers(part)]
    return [float(value)] if isinstance(value, int | float) else []


def test_no_event_time_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor the middle of two people, which the edges would be without the lattice."""
    random = np.random.default_rng(1)
    times = random.exponential(20, 400).clip(0, 60)
    rows = pl.DataFrame({"months": times, "died": random.integers(0, 2, 400)})

    def released_times() -> tuple[set[float], list[float]]:
        release = center(rows, moments="all").answer(encode(OVERALL)).payload
        edges = [e for t in tables(statuses(decode_answer(release))["all"]) for e in t.edges]
        return set(numbers(msgspec.json.decode(release))), edges

    everything, edges = released_times()
    assert not everything & set(times[times < 60])
    assert np.allclose(np.array(edges), np.round(edges), atol=1e-9)  # a lattice of whole months
    part = [np.sort(times[rows["died"] == status]) for status in (0, 1)]
    assert middles(part, edges) == 0
    monkeypatch.setattr(Lattice, "snap", lambda _, points: points)  # the rule taken out
    _, free = released_times()
    assert middles(part, free) > 20


def middles(people: Sequence[FloatArray], edges: Sequence[float]) -> int:
    """The attack: how many edges are the very middle of two neighbours."""
    between = np.concatenate([(times[1:] + times[:-1]) / 2 for times in people])
    return int(np.isclose(np.array(edges)[:, None], between, atol=1e-12).any(axis=1).sum())


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(10, 150), st.floats(0, 1), st.booleans())
def test_every_cell_and_every_status_speaks_for_nobody_or_k(
    seed: int, n: int, share: float, whole: bool
) -> None:
    random = np.random.default_rng(seed)
    times = random.exponential(15, n)
    rows = pl.DataFrame(
        {
            "months": np.ceil(times) if whole else times,
            "died": np.concatenate(([0, 1], random.random(n - 2) < share)).astype(int),
            "arm": random.choice(["a", "b"], n),
        }
    )
    answer = ask(center(rows, moments="all"), BY_ARM)
    if answer.aggregate is None:
        assert all(refusal.reason is Reason.TOO_SMALL for refusal in answer.refusals)
        return
    for label, group in statuses(answer).items():
        people = rows.filter(pl.col("arm") == label)
        events = int(((people["died"] == 1) & (people["months"] <= 60)).sum())
        for table in tables(group):
            assert min(table.counts) >= K
        assert sum(sum(table.counts) for table in tables(group)) == len(people)
        few = [0 < count < K for count in (events, len(people) - events)]
        flag = {(True, True): "both", (True, False): "events", (False, True): "censored"}
        assert group.below == flag.get((few[0], few[1]))


def test_one_status_alone_would_give_the_other_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four censored of sixty: the attack is n − events."""
    rows = trial(1, 60).with_columns(died=pl.Series([0] * 4 + [1] * 56))
    question = FollowUpQuestion(variable="months", event="died")

    def attack() -> int | None:
        haifa = center(rows)
        size = ask(haifa, question).aggregate
        answer = ask(haifa, OVERALL)
        if answer.aggregate is None:
            assert answer.refusals == (Refusal(reason=Reason.WOULD_ISOLATE, limit=K),)
            return None
        answers = statuses(answer)["all"]
        if answers.events is None:
            return None
        return int(size.moments[0].n - sum(answers.events.counts))  # type: ignore[union-attr]

    assert attack() is None

    def each_by_itself(self: Summary, group: str, lattice: Lattice) -> Any:
        events, *_ = self._times(group)
        table = cell_table(cutting.table_at(np.zeros(0), events, lattice, K, "none"))
        yield GroupStatuses(group=group, events=table, censored=None, either=None, below=None)

    monkeypatch.setattr(Summary, "_statuses", each_by_itself)
    assert attack() is None  # the rule has the four as a part of their own
    without_the_rule(monkeypatch)
    assert attack() == 4


def staying(events: int, lost: int, there: int) -> pl.DataFrame:
    """People of whom some have the event, some are lost, some are followed to the horizon of 60."""
    months = np.concatenate((np.linspace(3, 55, events + lost), np.full(there, 60.0)))
    return pl.DataFrame({"months": months, "died": [1] * events + [0] * (lost + there)})


@pytest.mark.parametrize(
    ("events", "lost", "there", "answer"),
    [
        (5, 30, 25, ("events", 25)),  # who stays is a part of their own: these had no event
        (5, 8, 25, ("both", 25)),
        (5, 30, 9, ("events", None)),  # too few stay
        (5, 4, 25, ("events", None)),  # too few left before
        (12, 4, 25, (None, None)),
    ],
)
def test_who_stays_to_the_horizon_is_told_where_k_do_and_k_others(
    events: int, lost: int, there: int, answer: tuple[str | None, int | None]
) -> None:
    group = statuses(ask(center(staying(events, lost, there)), OVERALL))["all"]
    assert (group.below, group.followed) == answer
    assert group.people == events + lost + there
    assert min(min(table.counts) for table in tables(group)) >= K


def test_who_stays_is_not_told_where_it_gives_the_others_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nine who left before: the attack is n less those who stay."""

    def attack() -> int | None:
        answer = ask(center(staying(5, 4, 25)), OVERALL)
        if answer.aggregate is None:
            return None
        group = statuses(answer)["all"]
        return None if group.followed is None else group.people - group.followed

    assert attack() is None

    def apart(self: Summary, group: str, lattice: Lattice) -> Any:
        events, before, followed = self._times(group)
        early = cutting.table_at(np.zeros(0), np.sort([*events, *before]), lattice, 1, "none")
        yield GroupStatuses(
            group=group,
            events=None,
            censored=None,
            either=cell_table(early),
            below="both",
            followed=len(followed),
        )

    monkeypatch.setattr(Summary, "_statuses", apart)
    assert attack() is None  # the rule has the nine as a part of their own
    without_the_rule(monkeypatch)
    monkeypatch.setattr(CellTable, "check", lambda *_: None)
    assert attack() == 9


def test_mean_and_counts_of_two_possible_times_are_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seven events at 3 months and three at 4: the attack reads the three off the mean."""
    rows = pl.DataFrame({"months": [3.0] * 7 + [4.0] * 3, "died": [1] * 10})
    question = SurvivalQuestion(variable="months", event="died", event_is="1", horizon=5.0)

    def attack() -> float | None:
        table = statuses(ask(center(rows, moments="all"), question))["all"].events
        assert table is not None
        (mean,) = table.means
        return None if mean is None else (mean - 3) * table.counts[0]

    assert attack() is None
    monkeypatch.setattr(cutting, "cell_moments", lambda values, *_: (values.mean(), values.std()))
    assert attack() is None  # the rule has no people to spare for a mean
    without_the_rule(monkeypatch)
    assert attack() == pytest.approx(3, abs=0.1)


class Replay:
    """A link without centers: it gives back the bytes that were released before."""

    def __init__(self, fed: Federation) -> None:
        self.centers = fed.centers
        self._told = {(r.center, encode(r.question)): r.payload for r in fed.releases}

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes | Refusal]:
        return {name: self._told[name, question] for name in centers}

    def close(self) -> None:
        pass


def test_numbers_at_risk_follow_from_the_releases_and_are_not_those_of_the_people() -> None:
    """Exact ones isolate people by subtraction between the times of a risk table."""
    rows = {"Haifa": trial(1, 240), "Bern": trial(2, 160)}
    fed = Federation.local(rows, policy=Policy(ad_hoc="free", moments="all"))
    result = fed.survival("months", "died", by="arm")
    asked = OutcomeRequest(Request("months", "arm"), "died", None, None)
    again = run_survival(Coordinator(Replay(fed)).converse(), asked, Variable())
    assert again.to_dict() == result.to_dict()
    at = np.arange(0.0, 48.0, 2.0)
    right, claims = 0, 0
    for arm in result.arms:
        months = np.concatenate(
            [f.filter(pl.col("arm") == arm.group)["months"].to_numpy() for f in rows.values()]
        )
        exact = -np.diff([np.count_nonzero(months >= t) for t in at])
        printed = -np.diff(np.round(arm.followed.at_risk(at)))
        small = (printed > 0) & (printed < K)
        claims += int(small.sum())
        right += int((printed == exact)[small].sum())
        assert np.any((exact > 0) & (exact < K))  # what exact numbers would isolate
    assert claims > 20
    assert right < claims / 2


def reached(answer: Answer, groups: tuple[str, ...], status: str) -> dict[float, int]:
    """How many people of these groups left up to each edge that they share, by one answer."""
    tables = [getattr(statuses(answer)[group], status) for group in groups]
    runs = [dict(zip(t.edges, np.cumsum(t.counts).tolist(), strict=False)) for t in tables]
    return {edge: sum(run[edge] for run in runs) for edge in set.intersection(*map(set, runs))}


@pytest.mark.parametrize(
    ("second", "same"),
    [(OVERALL, (("old", "new"), ("all",))), (SHORTER, (("old",), ("old",)))],
)
def test_a_second_table_of_the_same_people_isolates_nobody(
    monkeypatch: pytest.MonkeyPatch, second: Question, same: tuple[tuple[str, ...], ...]
) -> None:
    """On whole months, one answer's counts minus the other's isolate people between edges."""

    def attack(seed: int) -> int:
        haifa = center(trial(seed, 400).with_columns(months=pl.col("months").ceil()))
        first, other = ask(haifa, BY_ARM), ask(haifa, second)
        if other.aggregate is None or not set(same[1]) <= set(statuses(other)):
            assert other.refusals[0].reason is Reason.WOULD_ISOLATE
            return 0
        result = 0
        for status in ("events", "censored"):
            one, two = (reached(a, g, status) for a, g in zip((first, other), same, strict=True))
            result += sum(0 < abs(n - m) < K for n, m in product(one.values(), two.values()))
        return result

    assert sum(map(attack, range(6))) == 0
    monkeypatch.setattr(Memory, "remember", lambda *_: None)
    assert sum(map(attack, range(6))) >= 3


# --- an outcome beside other questions, solved exactly -----------------------------------------


def another_outcome(by: str | None = None, where: str | None = None) -> FollowUpQuestion:
    """How long people are followed up by crp, of all things; the event is somebody's sex."""
    return FollowUpQuestion(variable="crp", event="sex", event_is="F", by=by, where=where)


BESIDE: dict[str, Question] = {
    "everybody": OVERALL,
    "another grouping": SurvivalQuestion(variable="months", event="died", by="sex", horizon=60.0),
    "a shorter horizon": SHORTER,
    "the other status": msgspec.structs.replace(BY_ARM, event_is="0"),
    "women only": msgspec.structs.replace(BY_ARM, where="sex == 'F'"),
    "follow-up of another grouping": FollowUpQuestion(variable="months", event="died", by="sex"),
    "follow-up of the same": FollowUpQuestion(variable="months", event="died", by="arm"),
    "a table of the times": TableQuestion(variable="months"),
    "a lattice of the times": LatticeQuestion(variable="months", by="arm"),
    "deaths": MomentsQuestion(variable="died"),
    "deaths by arm": MomentsQuestion(variable="died", by="arm"),
    "a lattice of deaths by sex": LatticeQuestion(variable="died", by="sex"),
    "who died in a year": SizesQuestion(variable="months", where="died == 1 and months <= 12"),
    "sizes of the arms": SizesQuestion(variable="died", by="arm"),
    "times by death": MomentsQuestion(variable="months", by="died"),
    "crp by death": MomentsQuestion(variable="crp", by="died"),
    "crp of the dead": MomentsQuestion(variable="crp", where="died == 1"),
    "crp of a year": LatticeQuestion(variable="crp", where="months <= 12"),
    "another outcome by death": another_outcome(by="died"),
    "another outcome of who stayed": another_outcome(where="months > 12.5"),
    "the same event after crp": FollowUpQuestion(variable="crp", event="died"),
    "death as a time": FollowUpQuestion(variable="died", event="sex", event_is="F"),
    "another outcome's tables": SurvivalQuestion(
        variable="crp", event="sex", event_is="F", by="died", horizon=60.0
    ),
}
FEW = 4  # the smallest K of the attacks that try all sets of fewer than K people


def small_trial(seed: int) -> pl.DataFrame:
    """Seventy people, whose times are whole months."""
    crp = np.random.default_rng(seed).gamma(4, 1, 70)
    return trial(seed, 70, crp=crp).with_columns(months=pl.col("months").ceil())


def fewest_after(rows: pl.DataFrame, asked: Sequence[Question], forgets: bool = False) -> int:
    """Of how few people some number speaks that follows from all answers together."""
    haifa = center(rows, k=FEW)
    with pytest.MonkeyPatch.context() as patch, overheard() as answers:
        if forgets:
            patch.setattr(Memory, "remember", lambda *_: None)
            patch.setattr(Center, "_nearest", lambda *_: [])
        for question in asked:
            answer = ask(haifa, question)
            assert Reason.FAILED not in [refusal.reason for refusal in answer.refusals], question
    counts = ([r > 0 for r in rows if np.isin(r, (0, 1)).all()] for _, rows in answers.equations())
    return min(fewest_people(sets, FEW) for sets in counts)


@pytest.mark.parametrize("other", BESIDE.values(), ids=BESIDE)
def test_an_outcome_beside_another_question_exposes_nobody(other: Question) -> None:
    """Whichever is asked first."""
    for seed in range(2):
        for asked in ((BY_ARM, other), (other, BY_ARM)):
            assert fewest_after(small_trial(seed), asked) == FEW


def test_a_mean_of_yes_and_no_is_a_count_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Judged as a sum it passed, since two people of an arm's cell may be alone with a value."""
    asked = (OVERALL, SHORTER, MomentsQuestion(variable="died", by="arm"))
    assert [fewest_after(small_trial(seed), asked) for seed in (0, 7)] == [FEW, FEW]
    monkeypatch.setattr(message, "_different", lambda *_: None)  # the rule taken out
    assert fewest_after(small_trial(7), asked) == 1


def test_questions_beside_an_outcome_expose_people_where_nothing_is_remembered() -> None:
    exposed = {
        name: min(fewest_after(small_trial(seed), (BY_ARM, other), forgets=True) for seed in (0, 1))
        for name, other in BESIDE.items()
    }
    assert sum(fewest < FEW for fewest in exposed.values()) >= 6, exposed


@settings(max_examples=30, phases=(Phase.explicit, Phase.generate))  # each takes long to shrink
@given(
    st.integers(0, 10_000),
    st.lists(st.sampled_from([BY_ARM, *BESIDE.values()]), min_size=3, max_size=6, unique=True),
)
def test_no_sequence_of_questions_about_an_outcome_exposes_anybody(
    seed: int, asked: list[Question]
) -> None:
    assert fewest_after(small_trial(seed), asked) == FEW


@pytest.mark.parametrize("other", BESIDE.values(), ids=BESIDE)
def test_what_was_told_of_an_outcome_is_told_again_and_known_after_a_restart(
    other: Question, tmp_path: Path
) -> None:
    rows = trial(1, 400, crp=np.random.default_rng(1).gamma(4, 1, 400))
    haifa = center(rows, tmp_path / "Haifa.ledger")
    first, then = ask(haifa, BY_ARM), ask(haifa, other)
    assert first.aggregate is not None
    assert ask(haifa, BY_ARM) == first
    haifa.close()
    later = center(rows, tmp_path / "Haifa.ledger")
    assert ask(later, other).aggregate == then.aggregate
    assert ask(later, BY_ARM) == first
    later.close()


def test_more_arms_of_the_same_grouping_may_follow() -> None:
    haifa = center(trial(1, 400))
    old, new = (msgspec.structs.replace(BY_ARM, groups=(group,)) for group in ("old", "new"))
    assert ask(haifa, old).aggregate is not None
    assert ask(haifa, new).aggregate is not None


def few_died() -> pl.DataFrame:
    """Three of the sixty people in arm A died: rule 15 hides how many."""
    random = np.random.default_rng(0)
    died = np.repeat([0, 1, 0, 1], [57, 3, 30, 30])
    return pl.DataFrame(
        {
            "months": random.exponential(20, 120) + 0.01,
            "died": died,
            "arm": ["A"] * 60 + ["B"] * 60,
            "crp": random.gamma(9, 1, 120),
            "sex": random.choice(["F", "M"], 120),
        }
    )


def told_people(answer: Answer) -> dict[str, int]:
    return {g.group: g.n for g in answer.aggregate.moments} if answer.aggregate else {}


@pytest.mark.parametrize("survival_first", [True, False])
def test_another_outcome_does_not_count_the_events_of_a_told_one(
    survival_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: 60 people of the arm minus those who are followed up and did not die."""
    alive = another_outcome(where="arm == 'A' and died == 0")

    def attack() -> int | None:
        haifa = center(few_died())
        asked = (BY_ARM, alive) if survival_first else (alive, BY_ARM)
        answer = {question: ask(haifa, question) for question in asked}
        assert answer[asked[0]].aggregate is not None
        if answer[alive].aggregate is None or "A" not in statuses(answer[BY_ARM]):
            assert answer[asked[1]].refusals == (Refusal(reason=Reason.WOULD_ISOLATE, limit=K),)
            return None
        arm = statuses(answer[BY_ARM])["A"]
        assert arm.below == "events"
        return sum(sum(table.counts) for table in tables(arm)) - told_people(answer[alive])["all"]

    assert attack() is None
    without_the_rule(monkeypatch)
    assert attack() == 3


@pytest.mark.parametrize("where", [None, "months > 0", "sex == 'F' or died == 1"])
def test_an_outcome_is_told_after_its_own_follow_up(where: str | None) -> None:
    relapses = np.random.default_rng(1).integers(0, 2, 400)
    haifa = center(trial(1, 400, days=np.arange(400.0), relapsed=relapses))
    for question in (FollowUpQuestion(variable="months", event="died", by="arm"), BY_ARM):
        chosen = msgspec.structs.replace(question, where=where)
        assert ask(haifa, chosen).aggregate is not None
    other = SurvivalQuestion(variable="days", event="relapsed", by="arm", horizon=400.0)
    assert ask(haifa, other).aggregate is not None  # of other columns, in the same arms


FOLLOWED = FollowUpQuestion(variable="months", event="died")
OTHERWISE: dict[str, Question] = {
    "the times themselves": MomentsQuestion(variable="months"),
    "another status": FollowUpQuestion(variable="months", event="relapsed"),
}


@pytest.mark.parametrize("other", OTHERWISE.values(), ids=OTHERWISE)
@pytest.mark.parametrize("followed_first", [True, False])
@pytest.mark.parametrize("by", [None, "ward"])
def test_who_lacks_a_status_does_not_show(
    other: Question, followed_first: bool, by: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: of the same people, the second mean is the first if all have a status.

    The one who lacks it has been followed up for very long.
    """

    def attack(somebody_lacks_it: bool) -> tuple[set[str], bool]:
        rows = trial(1, 400, relapsed=np.arange(400) % 2, ward=["a", "b"] * 200)
        died, months = rows["died"].to_list(), rows["months"].to_list()
        rows = rows.with_columns(
            months=pl.Series([200.0, *months[1:]]),
            died=pl.Series([None if somebody_lacks_it else 1, *died[1:]]),
        )
        haifa = center(rows)
        where = None if by else "ward == 'a'"
        asked = (FOLLOWED, other) if followed_first else (other, FOLLOWED)
        named = {"by": by, "where": where, "groups": ("a", "b") if by else None}
        first, second = (ask(haifa, msgspec.structs.replace(q, **named)) for q in asked)
        assert first.aggregate is not None
        return set(told_people(second)), first.aggregate == second.aggregate

    assert attack(True) == attack(False)
    monkeypatch.setattr(centers, "rows_chosen", lambda *_: frozenset())  # the rule taken out
    assert attack(True) != attack(False)


def test_a_status_that_changed_is_not_told_beside_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One more death since the last answer: the attack finds the cell that has it."""
    rows = trial(1, 400)
    alive = int(np.flatnonzero(rows["died"] == 0)[0])
    later = rows.with_columns(died=pl.Series([d or i == alive for i, d in enumerate(rows["died"])]))

    def attack(ledger: Path) -> int | None:
        deaths = []
        for people in (rows, later):
            haifa = center(people.with_columns(pl.col("died").cast(int)), ledger)
            answer = ask(haifa, OVERALL)
            haifa.close()
            if answer.aggregate is None:
                assert answer.refusals[0].reason is Reason.DATA_CHANGED
                return None
            deaths.append(sum(getattr(statuses(answer)["all"].events, "counts", ())))
        return deaths[1] - deaths[0]

    assert attack(tmp_path / "kept.ledger") is None
    monkeypatch.setattr(memory, "people_changed", lambda *_: None)
    without_the_rule(monkeypatch)
    assert attack(tmp_path / "lost.ledger") == 1


def test_the_lattice_of_times_does_not_tell_who_has_a_status() -> None:
    """Ten of fifty times are no whole months: the attack reads off whether one of the ten died."""

    def facts(truth: bool) -> tuple[float, float | None]:
        months = np.concatenate((np.arange(40.0), np.arange(10.0) + 0.37))
        died = pl.Series([*[0, 1] * 20, *[0, 1] * 4, 0, 1 if truth else None])
        rows = pl.DataFrame({"months": months, "died": died})
        answer = ask(center(rows), OVERALL).aggregate
        assert isinstance(answer, SurvivalTables)
        return answer.scale, answer.resolution

    assert facts(truth=True) == facts(truth=False)
