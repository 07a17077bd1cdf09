"""A joint center in this process: three keys, and the program of the keepers with one party.

Members seal their shares as they do over a network. Here they are opened together.
"""

from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

from unpooled.center.questions import Answer
from unpooled.center.questions.joint import JointPlan, JointQuestion, JointShares, Keeper
from unpooled.center.records.keys import CenterKey, verifier
from unpooled.center.records.sealing import SealKey
from unpooled.center.records.signatures import signed_by_all, with_receipts
from unpooled.errors import JointError
from unpooled.federation.joint.answer import joint_answer
from unpooled.federation.joint.computation.program import JointNumbers, joint_numbers
from unpooled.federation.joint.computation.runtime import Alone
from unpooled.federation.joint.computation.secure import InconsistentError, Secure
from unpooled.federation.joint.record import JointRecord
from unpooled.federation.joint.shares import IsSigned, opened_shares
from unpooled.maths.joint.shares import (
    KEEPERS,
    FieldArray,
    added,
    recombine,
)

NAMES = tuple(f"keeper {number}" for number in range(1, KEEPERS + 1))


class LocalKeepers:
    """The three keepers, as one party that holds all shares; `members` has each center's key."""

    def __init__(
        self, members: Mapping[str, str], seed: int | None = None, folder: Path | None = None
    ) -> None:
        self._is_signed = signed_by(members)
        file = None if folder is None else folder / "joint center.ledger"
        key = CenterKey.generate() if seed is None else CenterKey.from_seed(seed, "joint")
        if file is not None:
            key = CenterKey.load_or_create(file.with_suffix(".key"))
        self.record = JointRecord(key, file)
        self._keys = tuple(SealKey(_private(name, key.secret)) for name in NAMES)

    @property
    def keepers(self) -> tuple[Keeper, ...]:
        """Their names and public keys."""
        keys = zip(NAMES, self._keys, strict=True)
        return tuple(Keeper(name=name, public=key.public) for name, key in keys)

    def compute(self, question: JointQuestion, shares: Mapping[str, JointShares]) -> Answer:
        """What the keepers open; raises JointError with the name of whose shares are wrong."""
        earlier = self.record.earlier(question)
        if earlier is not None:
            return earlier
        numbers, keys = self._opened(question, shares)
        opened = joint_answer(question.protocol, question.plan, numbers)
        about = question.protocol
        each = [
            with_receipts(self.record.ledger.signed(opened, about, name), about, name, some)
            for name, some in keys.items()
        ]
        answer = signed_by_all(each)
        self.record.note(question, answer)
        return answer

    def close(self) -> None:
        """Let go of the ledger."""
        self.record.close()

    def _opened(
        self, question: JointQuestion, shares: Mapping[str, JointShares]
    ) -> tuple[JointNumbers | None, dict[str, list[bytes]]]:
        """What the program opens, and each keeper's keys of receipts."""
        totals, keys = {}, {}
        for place, (name, key) in enumerate(zip(NAMES, self._keys, strict=True)):
            each = [
                opened_shares(
                    key, name, question, member, shares[member].sealed[place], self._is_signed
                )
                for member in question.members
            ]
            keys[name] = [receipt for receipt, _ in each]
            totals[place + 1] = added([vector for _, vector in each])
        return self._computed(question.plan, recombine(totals)), keys

    def _computed(self, plan: JointPlan, numbers: FieldArray) -> JointNumbers | None:
        """What the program opens of the added counts."""
        with Alone() as alone:
            try:
                return alone.run(joint_numbers(Secure(alone.runtime), plan, numbers))
            except InconsistentError as error:
                raise JointError(f"the joint center opened nothing: {error}") from error


def signed_by(publics: Mapping[str, str]) -> IsSigned:
    """Whether a center signed something, where the public keys of all are at hand."""

    def is_signed(center: str, message: bytes, signature: bytes) -> bool:
        return center in publics and verifier(publics[center])(signature.hex(), message)

    return is_signed


def _private(name: str, secret: bytes) -> bytes:
    return blake2b(name.encode(), key=secret, digest_size=32, person=b"unpooled keeper").digest()
