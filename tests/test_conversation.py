"""Each analysis has a conversation of its own: two at the same time never mix."""

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest

from unpooled import Federation, Policy
from unpooled.analyses.conversation import Coordinator
from unpooled.center.data.sources import open_source
from unpooled.center.questions import (
    Answer,
    Ranks,
    RanksQuestion,
    Reason,
    Refusal,
    Sizes,
    SizesQuestion,
    encode,
)
from unpooled.errors import MissingError
from unpooled.federation.local import LocalLink, open_link


def rows(seed: int) -> pl.DataFrame:
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "crp": random.gamma(4, 1, 100),
            "age": random.integers(20, 90, 100),
            "arm": ["a", "b"] * 50,
        }
    )


def link() -> LocalLink:
    sources = {name: open_source(rows(i)) for i, name in enumerate(("Haifa", "Bern"))}
    return open_link(sources, Policy(ad_hoc="free"), None, None, 1)


class Meeting:
    """A link on which no answer leaves before two questions have come."""

    def __init__(self) -> None:
        self._link = link()
        self.centers = self._link.centers
        self._both = threading.Barrier(2, timeout=30)

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes]:
        self._both.wait()
        answers = self._link.ask(question, centers)
        self._both.wait()
        return answers

    def close(self) -> None:
        self._link.close()


def test_two_analyses_at_the_same_time_have_a_record_each() -> None:
    fed = Federation(Meeting(), policy=Policy(ad_hoc="free"))
    with ThreadPoolExecutor() as pool:
        results = dict(zip(("crp", "age"), pool.map(fed.describe, ("crp", "age")), strict=True))
    for variable, result in results.items():
        asked = [(r.center, getattr(r.question, "variable", None)) for r in result.record.releases]
        assert len(asked) == 4
        assert {name for _, name in asked} == {variable}
        assert result.record.k == {"Haifa": 10, "Bern": 10}
    assert len(fed.releases) == 8


def test_a_conversation_holds_its_rounds_refusals_and_releases() -> None:
    coordinator = Coordinator(link())
    first, second = coordinator.converse(), coordinator.converse()
    first.ask(SizesQuestion(variable="crp"), Sizes)
    second.ask(RanksQuestion(variable="crp", by="arm", groups=("a", "c")), Ranks)
    second.ask(SizesQuestion(variable="crp"), Sizes, ["Bern"])
    assert (first.rounds, second.rounds) == (1, 2)
    assert first.refusals == []
    assert [(center, r.name) for center, r in second.refusals] == [("Haifa", "c"), ("Bern", "c")]
    assert [release.center for release in second.received] == ["Haifa", "Bern", "Bern"]
    assert [*first.received, *second.received] == coordinator.received
    assert second.ever_received == tuple(coordinator.received)


def test_a_result_says_what_can_no_more_be_asked() -> None:
    """Only bytes of the answer said it, which nobody reads."""
    rows = pl.DataFrame({"los": range(60)})
    fed = Federation.local({"Haifa": rows}, seed=1)
    fed.describe("los", where="los < 30")
    last = fed.describe("los", where="los >= 30 and los < 55")
    note = "Haifa: after this, nothing new can be asked of everybody there"
    assert note in last.record.notes
    assert note in str(last)


def test_a_center_whose_data_changed_is_missing() -> None:
    """A result went on without it, as if it had merely refused."""

    class Changed:
        """A center that answers, and one whose rows are others than when its ledger began."""

        centers = ("Haifa", "Bern")

        def __init__(self) -> None:
            self._link = link()

        def ask(
            self, question: bytes, centers: Sequence[str], *, stewards: bool = True
        ) -> Mapping[str, bytes | Refusal]:
            changed = Answer(k=10, aggregate=None, refusals=(Refusal(reason=Reason.DATA_CHANGED),))
            return {**self._link.ask(question, centers), "Bern": encode(changed)}

        def close(self) -> None:
            self._link.close()

    fed = Federation(Changed(), policy=Policy(ad_hoc="free"), on_missing="stop")
    with pytest.raises(MissingError, match="Bern: the center's data changed"):
        fed.describe("crp")
    assert Federation(Changed(), policy=Policy(ad_hoc="free")).describe("crp").refusals
