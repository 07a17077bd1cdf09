"""Notes and refusals folded by kind: how many in a sentence, and each of them below it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unpooled.center.questions import Reason
from unpooled.center.questions.refusals import MISSING
from unpooled.results.provenance.refusals import CenterRefusal, refusal_sentence
from unpooled.results.report.text import count


@dataclass(frozen=True, slots=True)
class Fold:
    """Things of one kind: how many in a sentence, and each of them below it."""

    summary: str
    items: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it on one line.

        Examples
        --------
        >>> Fold("too few (2 times)", ("A, F", "B, M")).text
        'too few (2 times): A, F; B, M'
        """
        return f"{self.summary}: {'; '.join(self.items)}" if self.items else self.summary


def fold_refusals(refusals: Sequence[CenterRefusal], centers: Sequence[str]) -> list[Fold]:
    """Refusals by their reason: how many centers, then each.

    Examples
    --------
    >>> small = [CenterRefusal(c, "F", "too-small", "fewer than 10 people") for c in "ABC"]
    >>> fold_refusals(small, "ABCD")[0].summary
    '3 of 4 centers, refused: fewer than 10 people (too-small)'
    >>> fold_refusals(small[:1], "ABCD")
    [Fold(summary='refused: A, F: fewer than 10 people (too-small)', items=())]
    """
    kinds: dict[tuple[str, str], list[CenterRefusal]] = {}
    for refusal in refusals:
        kinds.setdefault((refusal.reason, refusal.rule), []).append(refusal)
    every = len({*centers, *(refusal.center for refusal in refusals)})
    return [
        _fold(reason, rule, refusals_of_kind, every)
        for (reason, rule), refusals_of_kind in kinds.items()
    ]


def _fold(reason: str, rule: str, refusals: Sequence[CenterRefusal], every: int) -> Fold:
    word = "left out" if Reason(reason) in MISSING else "refused"
    if len(refusals) == 1:
        return Fold(f"{word}: {refusal_sentence(refusals[0])}")
    who = len({refusal.center for refusal in refusals})
    summary = f"{who} of {count(every, 'center')}, {word}: {rule} ({reason})"
    return Fold(summary, tuple(_whom(refusal) for refusal in refusals))


def _whom(refusal: CenterRefusal) -> str:
    return ", ".join(filter(None, (refusal.variable, refusal.center, refusal.group)))


def fold_notes(notes: Iterable[str]) -> list[Fold]:
    """Notes that say the same of several things, folded into one.

    Examples
    --------
    >>> fold_notes(["A, F: too few", "B, M: too few", "all is well"])
    [Fold(summary='too few (2 times)', items=('A, F', 'B, M')), Fold(summary='all is well', ...)]
    """
    kinds: dict[str, list[str]] = {}
    for note in dict.fromkeys(notes):
        whom, colon, says = note.partition(": ")
        kinds.setdefault(says if colon else note, []).append(whom if colon else "")
    folds = []
    for says, things in kinds.items():
        if len(things) > 1:
            folds.append(Fold(f"{says} ({len(things)} times)", tuple(things)))
        else:
            folds.append(Fold(f"{things[0]}: {says}" if things[0] else says))
    return folds
