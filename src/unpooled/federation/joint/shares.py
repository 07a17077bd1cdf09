"""A member's shares, as one keeper reads them."""

import numpy as np

from unpooled.center.questions.joint import JointQuestion
from unpooled.center.records.sealing import RECEIPT, SealKey
from unpooled.errors import JointError, SealError
from unpooled.maths.joint.shares import BYTES, FieldArray, are_shares, from_bytes


def opened_shares(
    key: SealKey, keeper: str, question: JointQuestion, member: str, sealed: bytes
) -> tuple[bytes, FieldArray]:
    """The key of a member's receipt and its shares, as its keeper reads them."""
    try:
        plain = key.open(sealed, question.context(member, keeper))
    except SealError as error:
        words = f"the shares of {member} cannot be opened by {keeper}"
        raise JointError(words, (member,)) from error
    if len(plain) != RECEIPT + BYTES * question.length(member):
        raise JointError(f"the shares of {member} are not as many as planned", (member,))
    numbers = from_bytes(plain[RECEIPT:])
    if not are_shares(numbers):
        raise JointError(f"the shares of {member} are out of range", (member,))
    nothing = np.zeros(question.plan.length - len(numbers), dtype=object)
    return plain[:RECEIPT], np.concatenate((numbers, nothing))
