"""All that a center says, and the bytes of questions and answers."""

import msgspec

from unpooled.errors import MessageError
from unpooled.questions.aggregates import Aggregate
from unpooled.questions.message import Message
from unpooled.questions.questions import Question
from unpooled.questions.refusals import Refusal


class Answer(Message, frozen=True):
    """All that a center says: the K in force, an aggregate or none, and what it refuses."""

    k: int
    aggregate: Aggregate | None
    refusals: tuple[Refusal, ...] = ()


_ENCODER = msgspec.json.Encoder(order="deterministic")
_QUESTIONS: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)
_ANSWERS = msgspec.json.Decoder(Answer)


def encode(message: Question | Answer) -> bytes:
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
