"""A condition that leaves out too few people is answered without it, and every result says so."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from unpooled import Federation
from unpooled.analyses.conversation import Coordinator
from unpooled.apps.cli import app
from unpooled.center.questions import Answer, Reason, Size, Sizes, SizesQuestion, encode

NEAR = "Bern: the condition differs from everybody, or from an earlier question, by fewer than 10"
WHERE = "age != 50"


def hospital(seed: int, people_of_fifty: int) -> pl.DataFrame:
    """400 people in two arms; so many of each are fifty years old."""
    random = np.random.default_rng(seed)
    age = np.where(np.arange(400) < 2 * people_of_fifty, 50, random.integers(51, 90, 400))
    return pl.DataFrame(
        {
            "crp": random.gamma(4, 1, 400).round(3),
            "arm": ["control", "patient"] * 200,
            "age": age,
            "months": random.exponential(40, 400).round(2) + 0.1,
            "died": random.integers(0, 2, 400),
        }
    )


def federation() -> Federation:
    """In Bern two people of each arm are fifty, in Haifa sixty."""
    return Federation.local({"Bern": hospital(1, 2), "Haifa": hospital(2, 60)}, seed=1)


QUESTIONS = {
    "describe": lambda fed, where: fed.describe("crp", by="arm", where=where),
    "describe all": lambda fed, where: fed.describe("crp", where=where),
    "table": lambda fed, where: fed.table("crp", by="arm", where=where),
    "parallel table": lambda fed, where: fed.table("crp", where=where, method="parallel"),
    "compare": lambda fed, where: fed.compare("crp", by="arm", where=where),
    "compare all": lambda fed, where: fed.compare("crp", by="arm", where=where, method="all"),
    "compare several": lambda fed, where: fed.compare(["crp", "months"], by="arm", where=where),
    "quantiles": lambda fed, where: fed.quantiles("crp", by="arm", where=where),
    "quantiles side by side": lambda fed, where: fed.quantiles(
        "crp", where=where, method=["parallel", "yj-table"]
    ),
    "quantiles of several": lambda fed, where: fed.quantiles(["crp", "months"], where=where),
    "survival": lambda fed, where: fed.survival("months", "died", by="arm", where=where),
}


def every_note(answer: Any) -> list[str]:
    """All notes in a result's plain values, however deep."""
    if isinstance(answer, list):
        return [note for part in answer for note in every_note(part)]
    if not isinstance(answer, dict):
        return []
    one = answer.get("notes", [])
    return [*one, *(note for part in answer.values() for note in every_note(part))]


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_every_result_says_who_is_answered_without_the_condition(ask: Any, tmp_path: Path) -> None:
    result = ask(federation(), WHERE)
    text = [line for line in str(result).splitlines() if "the condition differs" in line]
    assert len(text) == 1
    assert text[0].startswith("note: Bern")
    assert "fewer than 10 people" in text[0]
    assert any(note == text[0].removeprefix("note: ") for note in every_note(result.to_dict()))
    assert not any("Haifa" in note and "the condition" in note for note in result.record.notes)
    assert "the condition differs from everybody" in result._repr_html_()
    assert "the condition differs from everybody" in result.report(tmp_path / "r.html").read_text()
    whole = ask(federation(), None)
    assert "the condition differs" not in str(whole)
    assert not any("the condition differs" in note for note in every_note(whole.to_dict()))


def test_a_center_says_the_same_whether_nobody_or_a_few_are_left_out() -> None:
    answer = []
    for few in (0, 2):
        rows = hospital(1, 2).with_columns(age=pl.Series([50] * few * 2 + [60] * (400 - few * 2)))
        fed = Federation.local({"Bern": rows}, seed=1)
        answer.append(fed.describe("crp", by="arm", where=WHERE).to_dict())
    assert answer[0] == answer[1]
    assert (
        answer[0]["notes"] == [note for note in answer[0]["notes"] if note.startswith("Bern")] != []
    )


def test_the_command_line_prints_it(tmp_path: Path) -> None:
    hospital(1, 2).write_csv(tmp_path / "Bern.csv")
    asked = ["describe", "crp", "--centers", str(tmp_path / "Bern.csv"), "--where", WHERE]
    assert f"note: {NEAR}" in CliRunner().invoke(app, asked).stdout
    answer = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert [note.startswith(NEAR) for note in answer["notes"]] == [True]


class Liar:
    """A link to a center that names a group of which it tells nothing."""

    centers = ("Bern",)

    def ask(
        self, _question: bytes, _centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes]:
        answer = Sizes(sizes=(Size(group="all", n=40),))
        return {"Bern": encode(Answer(k=10, aggregate=answer, nearest=("Smith",)))}

    def close(self) -> None:
        pass


def test_a_group_of_which_nothing_is_told_is_not_believed() -> None:
    conversation = Coordinator(Liar()).converse()
    answer = conversation.ask(SizesQuestion(variable="crp", where=WHERE), Sizes)
    assert (answer.aggregates, answer.nearest, conversation.nearest) == ({}, (), [])
    assert [refusal.reason for _, refusal in answer.refusals] == [Reason.UNREADABLE_ANSWER]
