"""A center whose steward is asked, with answers of every kind that wait."""

from pathlib import Path

import msgspec
import numpy as np
import polars as pl

from unpooled.center import Center
from unpooled.center.approval.steward import Decision, HeldPayload, decide, pending
from unpooled.center.config import open_center, read_center
from unpooled.center.questions import (
    CatalogueQuestion,
    CategoryQuestion,
    FollowUpQuestion,
    GroupRanksQuestion,
    LatticeQuestion,
    MomentsQuestion,
    PowersQuestion,
    RanksQuestion,
    SizesQuestion,
    SurvivalQuestion,
    TableQuestion,
    encode,
)
from unpooled.center.questions.message import Message
from unpooled.errors import HeldError

QUESTIONS: list[Message] = [
    CatalogueQuestion(),
    SizesQuestion(variable="crp", by="arm"),
    MomentsQuestion(variable="crp", by="arm"),
    LatticeQuestion(variable="crp", by="arm"),
    TableQuestion(variable="crp", by="arm"),
    RanksQuestion(variable="crp", by="arm", groups=("control", "patient")),
    GroupRanksQuestion(variable="crp", by="sex"),
    CategoryQuestion(variable="sex", by="arm"),
    SurvivalQuestion(variable="months", event="died", by="arm", horizon=60.0),
    FollowUpQuestion(variable="months", event="died", by="arm"),
    PowersQuestion(variable="crp", lambdas=(0.0, 1.0)),
    SizesQuestion(variable="crp", by="arm", groups=("control", "nobody")),
]


def people(
    n: int = 140, seed: int = 1, arms: tuple[str, str] = ("control", "patient")
) -> pl.DataFrame:
    """People of two arms and two sexes, with a value, a time and whether they died."""
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "crp": random.gamma(3, 4, n).round(1),
            "arm": [arms[i % 2] for i in range(n)],
            "sex": [["F", "M"][i % 3 % 2] for i in range(n)],
            "months": random.exponential(30, n).round(1),
            "died": random.integers(0, 2, n),
        }
    )


def write_center(folder: Path, frame: pl.DataFrame | None = None, more: str = "") -> Path:
    """A folder as a steward has it: rows, and a center.toml that asks them."""
    folder.mkdir(parents=True, exist_ok=True)
    (people() if frame is None else frame).write_csv(folder / "data.csv")
    (folder / "center.toml").write_text(
        f'name = "Haifa"\nledger = "Haifa.ledger"\ndata = "data.csv"\napproval = "ask"\n{more}\n'
        '[policy]\nk = 10\nad_hoc = "free"\npaper_iteration = true\n'
        '[variables.crp]\nunit = "mg/L"\nresolution = 0.1\nlower = 0\nmissing = [-9]\n'
    )
    return folder


def open_haifa(folder: Path) -> Center:
    """The center that runs beside the desk."""
    return open_center(read_center(folder / "center.toml"), folder)


def hold(center: Center, *questions: Message, asker: str | None = "maria") -> None:
    """Ask, so that the answers wait."""
    for question in questions:
        try:
            center.answer(encode(question), None, asker)
        except HeldError:
            continue
        raise AssertionError(f"{question} was not held")


def decide_now(center: Center, folder: Path, decision: Decision, question: Message) -> HeldPayload:
    """Ask, decide, and ask again, as a steward and an analyst together do."""
    hold(center, question)
    waiting = folder / "Haifa.pending"
    held = next(h for h in pending(waiting) if h.question == encode(question).decode())
    decide(waiting, held, decision)
    center.answer(encode(question), None, "maria")
    return held


def put(folder: Path, question: Message, answer: Message) -> HeldPayload:
    """Let an answer wait that no center made, as a file."""
    held = HeldPayload(
        since="2026-03-02T09:14:07Z",
        question=encode(question).decode(),
        answer=encode(answer).decode(),
        ticket=None,
        asker="maria",
    )
    waiting = folder / "Haifa.pending"
    waiting.mkdir(mode=0o700, exist_ok=True)
    (waiting / f"{held.name}.json").write_bytes(msgspec.json.encode(held))
    return held
