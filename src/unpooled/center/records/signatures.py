"""A center's signature of what it says to a protocol: part of the answer itself.

It is made of the center's name, the protocol and the answer, with the key of the center's ledger.
The same answer has the same signature. Three keepers sign what a joint center says, and give each
member a receipt, by a key that it sent them with its shares: so the member knows that they said it.
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b, sha256

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


def with_receipts(answer: Answer, protocol: Protocol, keeper: str, keys: Sequence[bytes]) -> Answer:
    """A keeper's answer with a receipt for each member, made with the key that it shared."""
    text = _text(answer, protocol, keeper)
    receipts = tuple(_receipt(key, text) for key in keys)
    each = (msgspec.structs.replace(one, receipts=receipts) for one in signatures(answer))
    return _with(answer, tuple(each))


def without_receipts(answer: Answer) -> Answer:
    """The answer with its signatures alone."""
    each = (msgspec.structs.replace(one, receipts=()) for one in signatures(answer))
    return _with(answer, tuple(each))


def has_receipts(answer: Answer, protocol: Protocol, place: int, keys: Mapping[str, bytes]) -> bool:
    """Whether all these keepers gave a member, by its place, a receipt for this very answer."""
    given = {one.center: one.receipts[place : place + 1] for one in signatures(answer)}
    return given.keys() == keys.keys() and all(
        given[keeper] == (_receipt(key, _text(answer, protocol, keeper)),)
        for keeper, key in keys.items()
    )


def _receipt(key: bytes, text: bytes) -> str:
    return blake2b(text, key=key, digest_size=32, person=b"unpooled receipt").hexdigest()


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
