"""A curious analyst: asks a center in its own words, and reads the bytes that come back.

Fields that a center may leave out are read as absent, so that an attack runs on any version.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any

from unpooled.center import Center
from unpooled.center.data.sources import open_source
from unpooled.center.data.variables import Variable
from unpooled.center.policy import Policy
from unpooled.center.questions import Question, encode
from unpooled.center.records.keys import CenterKey

K = 10

FREE: dict[str, Any] = {"ad_hoc": "free"} if "ad_hoc" in Policy.__struct_fields__ else {}
"""Free conditions, where a policy has a choice: the rule itself must hold, not only the switch."""


def open_center(
    rows: object,
    *,
    k: int = K,
    variables: dict[str, Variable] | None = None,
    folder: Path | None = None,
    free: bool = True,
    **policy: Any,
) -> Center:
    """A center with these rows; its key and ledger are in a folder, or in memory.

    `free` lets conditions be asked freely where that is a choice; without it the default holds.
    """
    ledger = None if folder is None else folder / "Porto.ledger"
    key = CenterKey.from_seed(1, "Porto")
    if folder is not None:
        key = CenterKey.load_or_create(folder / "Porto.key")
    chosen = Policy(k=k, **(FREE if free else {}), **policy)
    return Center("Porto", open_source(rows), chosen, key, variables, ledger)


def answer(center: Center, question: Question) -> dict[str, Any]:
    """All that a center says to a question."""
    message: dict[str, Any] = json.loads(center.answer(encode(question)).payload)
    return message


def ask(center: Center, question: Question) -> dict[str, Any]:
    """What it says of people; empty where it says nothing."""
    return aggregate(center.answer(encode(question)).payload)


def aggregate(payload: bytes) -> dict[str, Any]:
    """What an answer's bytes say of people; empty where they say nothing."""
    return json.loads(payload).get("aggregate") or {}


def reasons(center: Center, question: Question) -> tuple[str, ...]:
    """Why it does not answer, in whole or in part."""
    return tuple(refusal["reason"] for refusal in answer(center, question).get("refusals", ()))


@dataclass(frozen=True, slots=True)
class Score:
    """How many claims about fewer than K people are right, of how many that were made."""

    right: int = 0
    claimed: int = 0
    tried: int = 0  # how many there were to find

    def __add__(self, other: "Score") -> "Score":
        return Score(
            self.right + other.right, self.claimed + other.claimed, self.tried + other.tried
        )

    def beats(self, chance: float) -> bool:
        """Whether so many right claims are more than guesses, each right with this chance, make."""
        ways = range(self.right, self.claimed + 1)
        n = self.claimed
        return sum(comb(n, r) * chance**r * (1 - chance) ** (n - r) for r in ways) < 1e-3


def total(scores: Iterable[Score]) -> Score:
    """The score of several attacks together."""
    return sum(scores, Score())
