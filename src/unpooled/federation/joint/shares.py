"""A member's shares, as one keeper reads them."""

from collections.abc import Callable

import numpy as np

from unpooled.center.questions.joint import JointQuestion
from unpooled.center.records.sealing import RECEIPT, SealKey, signed_text
from unpooled.errors import JointError, SealError
from unpooled.maths.joint.shares import BYTES, FieldArray, are_shares, from_bytes

IsSigned = Callable[[str, bytes, bytes], bool]
"""Whether a center, by its name, signed a message: by keys that no coordinator brought."""


class UnsignedError(JointError):
    """Shares are not signed by the member whose they are said to be."""


def opened_shares(
    key: SealKey,
    keeper: str,
    question: JointQuestion,
    member: str,
    sealed: bytes,
    is_signed: IsSigned,
) -> tuple[bytes, FieldArray]:
    """The key of a member's receipt and its shares, as its keeper reads them.

    Anybody can seal to a keeper. Whoever made the shares of all members but one could subtract
    them from what is opened; so each member signs its own.
    """
    try:
        plain = key.open(sealed, question.context(member, keeper))
    except SealError as error:
        words = f"the shares of {member} cannot be opened by {keeper}"
        raise JointError(words, (member,)) from error
    length = RECEIPT + BYTES * question.length(member)
    if len(plain) < length:
        raise JointError(f"the shares of {member} are not as many as planned", (member,))
    plain, signature = plain[:length], plain[length:]
    if not is_signed(member, signed_text(question, member, keeper, plain), signature):
        raise UnsignedError(f"the shares of {member} do not have its signature", (member,))
    numbers = from_bytes(plain[RECEIPT:])
    if not are_shares(numbers):
        raise JointError(f"the shares of {member} are out of range", (member,))
    nothing = np.zeros(question.plan.length - len(numbers), dtype=object)
    return plain[:RECEIPT], np.concatenate((numbers, nothing))
