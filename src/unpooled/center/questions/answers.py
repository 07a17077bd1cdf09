"""All that a center says, and the bytes of questions and answers."""

from functools import reduce
from operator import or_
from typing import Annotated, Any

import msgspec

from unpooled.center.questions.catalogue import Catalogue, CatalogueQuestion
from unpooled.center.questions.category import Categories, CategoryQuestion
from unpooled.center.questions.chain import CenterJoin, CenterTable, JoinQuestion, TableQuestion
from unpooled.center.questions.joint import JointQuestion, JointShares
from unpooled.center.questions.lattice import LatticeQuestion, LatticeTables
from unpooled.center.questions.message import Aggregate, Message
from unpooled.center.questions.moments import FollowUpQuestion, Moments, MomentsQuestion
from unpooled.center.questions.powers import Powers, PowersQuestion
from unpooled.center.questions.protocol import (
    PartQuestion,
    ProtocolCheckQuestion,
    ProtocolQuestion,
)
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
    | CategoryQuestion
)
Question = (
    CatalogueQuestion | ProtocolQuestion | ProtocolCheckQuestion | JointQuestion | AboutPeople
)

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
    CategoryQuestion: Categories,
}


class ProtocolPart(Message, frozen=True):
    """One question of a protocol, and what the center says to it."""

    question: PartQuestion
    answer: "Answer"

    def __post_init__(self) -> None:
        if isinstance(
            self.answer.aggregate, Catalogue | ProtocolAnswer | ProtocolCheck | JointShares
        ):
            raise MessageError("a part of a protocol must be the answer to one question")


class Signature(Message, frozen=True):
    """Who signed an answer: a center's name, the public half of its key, and its signature.

    A keeper of a joint center adds a `receipt` for each of its members: only the two can make it.
    """

    center: str
    key: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
    signature: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{128}\Z")]
    receipts: tuple[Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")], ...] = ()


class ProtocolAnswer(Message, frozen=True, tag="protocol", tag_field="say"):
    """All that a center says to a protocol, as one release.

    `k` is the K in force for it: the center's own, or the protocol's where that is higher.
    """

    k: int
    parts: tuple[ProtocolPart, ...]
    signatures: tuple[Signature, ...] = ()  # of the center, or of the keepers of a joint center

    def sentence(self) -> str:
        """What a steward reads."""
        answered = sum(part.answer.aggregate is not None for part in self.parts)
        return f"{answered} of {len(self.parts)} parts of a protocol, K = {self.k}"


class CheckedPart(Message, frozen=True):
    """One question of a protocol: the blocks of which the center would tell, and its refusals."""

    question: PartQuestion
    blocks: tuple[str, ...]
    refusals: tuple[Refusal, ...]


class ProtocolCheck(Message, frozen=True, tag="protocol-check", tag_field="say"):
    """What a center would tell for a protocol. Nothing here but what its answer says, too."""

    k: int
    parts: tuple[CheckedPart, ...]

    @classmethod
    def of(cls, answer: ProtocolAnswer) -> "ProtocolCheck":
        """The check that follows from an answer."""
        return cls(
            k=answer.k,
            parts=tuple(
                CheckedPart(
                    question=part.question,
                    blocks=()
                    if part.answer.aggregate is None
                    else tuple(part.answer.aggregate.labels()),
                    refusals=part.answer.refusals,
                )
                for part in answer.parts
            ),
        )

    def sentence(self) -> str:
        """What a steward reads."""
        with_blocks = sum(bool(part.blocks) for part in self.parts)
        parts = f"{with_blocks} of {len(self.parts)} parts of a protocol"
        return f"{parts} could be answered, K = {self.k}"


_Said: Any = reduce(
    or_, dict.fromkeys(ANSWERS.values()), Catalogue | ProtocolAnswer | ProtocolCheck | JointShares
)


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


_ENCODER = msgspec.json.Encoder()  # a protocol's variables keep their order
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
