"""The parallel round: one question, every center's tables."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unpooled.analyses.conversation import Coordinator
from unpooled.analyses.numbers.parallel import Tables, ask_tables
from unpooled.analyses.request import Request
from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable, read_codebook
from unpooled.center.policy import Policy
from unpooled.center.questions import (
    Answer,
    CellTable,
    GroupTable,
    LatticeQuestion,
    LatticeTables,
    Reason,
    TableQuestion,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import CenterKey
from unpooled.errors import InputError, RefusedError
from unpooled.federation.local import open_link


def tables(
    rows: dict[str, pl.DataFrame], request: Request, variable: Variable | None = None
) -> Tables:
    declared = variable or Variable()
    sources = {name: open_source(frame) for name, frame in rows.items()}
    link = open_link(sources, Policy(ad_hoc="free"), {request.variable: declared}, None, 1)
    return ask_tables(Coordinator(link).converse(), request, declared)


def frame(n: int, seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame({"v": random.gamma(4, 1, n), "g": ["a", "b"] * (n // 2)})


def test_every_person_is_in_one_cell_of_one_table() -> None:
    rows = {"A": frame(200, 1), "B": frame(100, 2)}
    answer = tables(rows, Request("v", "g"))
    assert answer.rounds == 1
    assert list(answer.groups) == ["a", "b"]
    assert {center: part[0].people for center, part in answer.groups["a"].items()} == {
        "A": 100,
        "B": 50,
    }
    exact = np.sort(rows["A"].filter(pl.col("g") == "a")["v"].to_numpy())
    table = answer.groups["a"]["A"][0]
    reached = np.searchsorted(exact, table.edges, "right")
    assert np.diff(reached, prepend=0, append=100).tolist() == table.counts.tolist()


def test_a_small_group_is_refused_by_name_and_the_others_answer() -> None:
    small = pl.DataFrame({"v": np.arange(60.0), "g": ["a"] * 45 + ["b"] * 15})
    answer = tables({"A": small}, Request("v", "g", ("a", "b")))
    assert answer.of("b") == []
    assert [(c, r.reason, r.limit) for c, r in answer.refusals] == [("A", Reason.TOO_SMALL, 20)]
    with pytest.raises(RefusedError, match="fewer than 20 people"):
        tables({"A": small}, Request("v", "g", ("b",)))


@pytest.mark.parametrize("policy", [Policy(ad_hoc="free"), Policy(ad_hoc="free", moments="all")])
def test_the_same_question_has_the_same_bytes_whatever_came_between(
    policy: Policy, tmp_path: Path
) -> None:
    """A table of people who were told in cells before is coarser, but not the very same one."""
    asked = LatticeQuestion(variable="v", by="g")
    between = [LatticeQuestion(variable="v"), TableQuestion(variable="v", by="g"), asked]
    key, ledger = CenterKey.from_seed(1, "A"), tmp_path / "A.ledger"
    answer = set()
    for _ in range(2):  # and in the next life of the center, too
        center = Center("A", open_source(frame(200, 1)), policy, key, None, ledger)
        for question in (asked, *between):
            payload = center.answer(encode(question)).payload
            if question is asked:
                answer.add(payload)
        center.close()
    assert len(answer) == 1
    assert decode_answer(answer.pop()).aggregate is not None


def test_what_a_new_policy_forbids_is_not_said_again(tmp_path: Path) -> None:
    asked, key = encode(LatticeQuestion(variable="v")), CenterKey.from_seed(1, "A")
    fewest = []
    for k in (10, 25):
        policy = Policy(ad_hoc="free", k=k)
        center = Center("A", open_source(frame(200, 1)), policy, key, None, tmp_path / "A.ledger")
        answer = decode_answer(center.answer(asked).payload)
        center.close()
        assert answer.k == k
        assert isinstance(answer.aggregate, LatticeTables)
        fewest.append(min(answer.aggregate.groups[0].table.counts))
    assert fewest[0] < 25 <= fewest[1]


def test_declared_facts_shape_the_lattice() -> None:
    days = pl.DataFrame({"v": np.random.default_rng(3).poisson(6, 300).astype(float)})
    whole = tables({"A": days}, Request("v"), Variable(resolution=1, lower=0))
    assert set(whole.of("all")[0].edges % 1) == {0.5}
    zeros = pl.DataFrame({"v": [0.0] * 50 + np.linspace(0.1, 9, 100).tolist()})
    part = tables({"A": zeros}, Request("v"), Variable(lower=0, atoms=(0,), scale=3))
    first = part.of("all")[0]
    assert (first.counts[0], first.means[0], first.sds[0]) == (50, 0.0, 0.0)


def test_the_scale_of_a_column_is_robust() -> None:
    """Neither outliers nor many equal values hide how far the others spread."""
    random = np.random.default_rng(4)
    normal = random.normal(0, 1, 4000)
    columns = {
        "normal": normal,
        "outlier": np.append(normal, 1e9),
        "cauchy": random.standard_cauchy(4000),
        "zeros": np.concatenate((np.zeros(9000), normal)),
        "large": normal + 1e12,
    }
    for name, values in columns.items():
        spread = open_source(pl.DataFrame({"v": values})).spread("v", 20)
        rest = values[values != 0]
        low, high = np.quantile(rest, [0.25, 0.75])
        assert spread == pytest.approx(high - low, rel=0.1), name
    assert open_source(pl.DataFrame({"v": [3.0] * 40})).spread("v", 20) == 0.0


class Liar:
    """A link to a center that answers nonsense, beside one that does not."""

    centers = ("A", "B")

    def __init__(self, nonsense: LatticeTables) -> None:
        true = cells((2.0, 4.0), (10, 10, 10))
        self._told = {"A": true, "B": nonsense}

    def ask(
        self, _question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> dict[str, bytes]:
        return {c: encode(Answer(k=10, aggregate=self._told[c])) for c in centers}

    def close(self) -> None:
        pass


def cells(
    edges: tuple[float, ...],
    counts: tuple[int, ...],
    mean: float = 1.0,
    scale: float = 2.0,
    group: str = "all",
) -> LatticeTables:
    blank = (None,) * (len(counts) - 1)
    table = CellTable(
        edges=edges,
        counts=counts,
        means=(mean, *blank),
        sds=(None, *blank),
    )
    groups = (GroupTable(group=group, table=table),)
    return LatticeTables(scale=scale, moments="tails", groups=groups, lower=0.0)


@pytest.mark.parametrize(
    "nonsense",
    [
        cells((4.0, 2.0), (10, 10, 10)),
        cells((2.0, 4.0), (10, -3, 10)),
        cells((2.0, 4.0), (10, 10, 10), mean=3.0),
        cells((-2.0, 4.0), (10, 10, 10)),
        cells((2.0, 4.0), (10, 10, 10), scale=-1.0),
        cells((2.0, 4.0), (10, 10, 10), group="Smith"),
    ],
)
def test_a_center_that_answers_nonsense_is_named_and_left_out(nonsense: LatticeTables) -> None:
    answer = ask_tables(Coordinator(Liar(nonsense)).converse(), Request("v"), Variable(lower=0))
    assert list(answer.groups["all"]) == ["A"]
    assert [(c, r.reason) for c, r in answer.refusals] == [("B", Reason.UNREADABLE_ANSWER)]


def test_wrong_declarations_are_told_in_words() -> None:
    with pytest.raises(InputError, match="scale must be positive, got 0"):
        Variable(scale=0)
    with pytest.raises(InputError, match="scale must be a finite number, got nan"):
        Variable(scale=float("nan"))
    with pytest.raises(InputError, match="atoms must lie within lower and upper, got -1"):
        Variable(lower=0, atoms=(-1,))
    with pytest.raises(InputError, match=r"multiples of resolution=0\.5, got 0\.3"):
        Variable(resolution=0.5, atoms=(0.3,))
    with pytest.raises(InputError, match="atoms must be a finite number, got 'x'"):
        Variable(atoms=("x",))  # type: ignore[arg-type]


def test_a_codebook_can_declare_them(tmp_path: Path) -> None:
    (tmp_path / "codebook.toml").write_text("[v]\nscale = 3\natoms = [0, 5]\n")
    read = read_codebook(tmp_path / "codebook.toml")
    assert read["v"] == Variable(scale=3, atoms=(5, 0))
