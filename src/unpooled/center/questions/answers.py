"""All that a center says, and the bytes of questions and answers."""

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from unpooled.center.questions.catalogue import Catalogue, CatalogueQuestion
from unpooled.center.questions.chain import CenterJoin, CenterTable, JoinQuestion, TableQuestion
from unpooled.center.questions.lattice import LatticeQuestion, LatticeTables
from unpooled.center.questions.message import Aggregate, Message
from unpooled.center.questions.moments import FollowUpQuestion, Moments, MomentsQuestion
from unpooled.center.questions.powers import Powers, PowersQuestion
from unpooled.center.questions.ranks import GroupRanks, GroupRanksQuestion, Ranks, RanksQuestion
from unpooled.center.questions.refusals import Refusal
from unpooled.center.questions.sizes import Sizes, SizesQuestion
from unpooled.center.questions.survival import SurvivalQuestion, SurvivalTables
from unpooled.errors import MessageError

AboutPeople = (
    SizesQuestion
    | MomentsQuestion
    | TableQuestion
    | JoinQuestion
    | RanksQuestion
    | LatticeQuestion
    | GroupRanksQuestion
    | FollowUpQuestion
    | SurvivalQuestion
    | PowersQuestion
)
Question = CatalogueQuestion | AboutPeople

ANSWERS: dict[type[Message], type[Aggregate]] = {
    SizesQuestion: Sizes,
    MomentsQuestion: Moments,
    TableQuestion: CenterTable,
    JoinQuestion: CenterJoin,
    RanksQuestion: Ranks,
    LatticeQuestion: LatticeTables,
    GroupRanksQuestion: GroupRanks,
    FollowUpQuestion: Moments,
    SurvivalQuestion: SurvivalTables,
    PowersQuestion: Powers,
}
_Said: Any = reduce(or_, dict.fromkeys(ANSWERS.values()), Catalogue)


class Answer(Message, frozen=True):
    """All that a center says: the K in force, an aggregate or none, and what it refuses.

    `nearest` names groups that are answered as an earlier question had them, since the people
    of the two differ by fewer than K. `shuts_out` names groupings, or everybody, that the center
    can tell no more of after this answer.
    """

    k: int
    aggregate: _Said | None
    refusals: tuple[Refusal, ...] = ()
    nearest: tuple[str, ...] = ()
    shuts_out: tuple[str, ...] = ()


_ENCODER = msgspec.json.Encoder(order="deterministic")
_QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_ANSWERS = msgspec.json.Decoder(Answer)


def encode(message: Message) -> bytes:
    """The message as JSON bytes, always the same for the same message."""
    return _ENCODER.encode(message)


def decode_question(payload: bytes) -> Question:
    """Read a question back, strictly."""
    try:
        return _QUESTIONS.decode(payload)
    except msgspec.MsgspecError as error:
        raise MessageError(f"these bytes are not a question: {error}") from error


def decode_answer(payload: bytes) -> Answer:
    """Read an answer back, strictly."""
    try:
        return _ANSWERS.decode(payload)
    except msgspec.MsgspecError as error:
        raise MessageError(f"these bytes are not an answer: {error}") from error
