"""A center's signature of what it says to a protocol: part of the answer itself.

It is made of the center's name, the protocol and the answer, with the key of the center's ledger.
The same answer has the same signature. Three keepers sign what a joint center says.
"""

from collections.abc import Callable
from hashlib import sha256

import msgspec

from unpooled.center.questions import (
    Answer,
    Protocol,
    ProtocolAnswer,
    Signature,
    decode_answer,
    encode,
)
from unpooled.center.records.keys import verifier

_SIGNED = b"unpooled answer to a protocol\n"


def signed(
    answer: Answer, protocol: Protocol, center: str, key: str, sign: Callable[[bytes], bytes]
) -> Answer:
    """The answer with a center's signature; `key` is the public half of what signs it."""
    signature = sign(_text(answer, protocol, center)).hex()
    return _with(answer, (Signature(center=center, key=key, signature=signature),))


def without_signatures(answer: Answer) -> Answer:
    """The answer alone, as all who sign it have it."""
    return _with(answer, ())


def signatures(answer: Answer) -> tuple[Signature, ...]:
    """Who signed an answer."""
    return answer.aggregate.signatures if isinstance(answer.aggregate, ProtocolAnswer) else ()


def signed_by_all(answers: list[Answer]) -> Answer:
    """One answer with the signatures of all who gave it."""
    return _with(answers[0], tuple(one for answer in answers for one in signatures(answer)))


def are_valid(answer: Answer, protocol: Protocol) -> bool:
    """Whether somebody signed an answer, and all signatures are of it."""
    return bool(signatures(answer)) and all(
        verifier(one.key)(one.signature, _text(answer, protocol, one.center))
        for one in signatures(answer)
    )


def _with(answer: Answer, signed_by: tuple[Signature, ...]) -> Answer:
    if not isinstance(answer.aggregate, ProtocolAnswer):
        return answer
    aggregate = msgspec.structs.replace(answer.aggregate, signatures=signed_by)
    return msgspec.structs.replace(answer, aggregate=aggregate)


def _text(answer: Answer, protocol: Protocol, center: str) -> bytes:
    """What is signed; numbers are spelled as whoever reads the bytes spells them."""
    plan = msgspec.json.decode(encode(protocol), type=Protocol)
    read = decode_answer(encode(without_signatures(answer)))
    digests = (sha256(encode(one)).digest() for one in (plan, read))
    return _SIGNED + center.encode() + b"\n" + b"".join(digests)
