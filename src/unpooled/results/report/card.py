"""A card: a result with the answer first, the same in workbench, report, Word and notebook."""

from dataclasses import dataclass

from unpooled.results.report.folding import Fold, fold_notes, fold_refusals
from unpooled.results.report.page import Figure
from unpooled.results.report.parts import Grid, Remarks, Sentences
from unpooled.results.result import Result


@dataclass(frozen=True, slots=True)
class Card:
    """What a result shows, in the order in which people read."""

    title: str
    answer: str
    figure: Figure | None
    grids: tuple[Grid, ...]
    sentences: tuple[str, ...]
    notes: tuple[Fold, ...]


def card_of(result: Result) -> Card:
    """The card of a result."""
    parts = result.parts()
    remarks = [part for part in parts if isinstance(part, Remarks)]
    notes = [sentence for part in remarks for _, sentence in part.items] + result.record.notes
    answer = result.answer
    sentences = (s for part in parts if isinstance(part, Sentences) for s in part.sentences)
    return Card(
        result.title,
        answer,
        result.picture(),
        tuple(part for part in parts if isinstance(part, Grid)),
        tuple(sentence for sentence in sentences if sentence != answer),
        (*fold_refusals(result.refusals, result.record.centers), *fold_notes(notes)),
    )
