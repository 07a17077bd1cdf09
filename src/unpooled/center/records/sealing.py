"""Sealed messages: only the holder of one key can read them, and only where they belong.

As in HPKE's base mode [1]_: a fresh X25519 key is agreed with the receiver's, HKDF makes a key for
this one message, ChaCha20-Poly1305 encrypts it. What the message is for, its context, is part of
both: it cannot be moved to another variable, block, member or keeper. Who sent it is another
matter: a member's signature of its shares is sealed with them.

References
----------
.. [1] Barnes, Bhargavan, Lipp, Wood (2022). Hybrid public key encryption. RFC 9180.
"""

from collections.abc import Callable
from hashlib import blake2b, sha256, shake_256

from unpooled.center.questions.joint import JointQuestion, JointShares, encoded
from unpooled.errors import SealError
from unpooled.maths.arrays import IntArray
from unpooled.maths.joint.shares import split, to_bytes

_INFO = b"unpooled sealed 1"
_CHANNEL = b"unpooled channel 1"
_SIGNED = b"unpooled shares of a member\n"
_PUBLIC = 32
RECEIPT = 32  # bytes of the key of a receipt
_NONCE = bytes(12)  # a key has one message, so one nonce


class SealKey:
    """The X25519 key that messages to a center are sealed to.

    >>> key = SealKey(bytes(32))
    >>> key.open(seal(key.public, b"7 people", b"crp, block 2"), b"crp, block 2")
    b'7 people'
    """

    __slots__ = ("_key", "public")

    public: str
    """The public half in hex."""

    def __init__(self, private: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

        self._key = X25519PrivateKey.from_private_bytes(private)
        self.public = self._key.public_key().public_bytes_raw().hex()

    @classmethod
    def derived(cls, private: bytes) -> "SealKey":
        """The key that belongs to a center's private key."""
        return cls(blake2b(key=private, digest_size=32, person=b"unpooled seals").digest())

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """What was sealed; raises SealError where key, bytes or context are others."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        if len(sealed) < _PUBLIC:
            raise SealError("a sealed message is too short")
        fresh = sealed[:_PUBLIC]
        try:
            key = _key(self._agreed(fresh), _INFO, fresh, bytes.fromhex(self.public), context)
            return ChaCha20Poly1305(key).decrypt(_NONCE, sealed[_PUBLIC:], context)
        except (InvalidTag, ValueError) as error:
            raise SealError(
                "a sealed message was changed, is for another key, or belongs elsewhere"
            ) from error

    def channel_key(self, other: str, context: bytes) -> bytes:
        """The key that two centers share for one conversation."""
        return _key(self._agreed(bytes.fromhex(other)), _CHANNEL, context)

    def _agreed(self, other: bytes) -> bytes:
        from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

        return self._key.exchange(X25519PublicKey.from_public_bytes(other))


def seal(public: str, message: bytes, context: bytes, fresh_private: bytes | None = None) -> bytes:
    """A message that only the holder of a key can read.

    `fresh_private` may be used for one message only; without it, it is drawn.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    if fresh_private is None:
        ephemeral = X25519PrivateKey.generate()
    else:
        ephemeral = X25519PrivateKey.from_private_bytes(fresh_private)
    fresh, receiver = ephemeral.public_key().public_bytes_raw(), bytes.fromhex(public)
    agreed = ephemeral.exchange(X25519PublicKey.from_public_bytes(receiver))
    key = _key(agreed, _INFO, fresh, receiver, context)
    return fresh + ChaCha20Poly1305(key).encrypt(_NONCE, message, context)


def _key(agreed: bytes, *about: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    info = b"".join(len(part).to_bytes(4, "big") + part for part in about)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(agreed)


def sealed_shares(
    question: JointQuestion,
    member: str,
    numbers: IntArray,
    secret: bytes,
    sign: Callable[[bytes], bytes],
) -> JointShares:
    """A center's numbers as shares, each signed, and sealed with the signature to its keeper.

    All that is random about them follows from the center's secret and from what is shared, so that
    they come out alike again.
    """
    about = blake2b(encoded(question), key=secret[:64], person=b"unpooled shares")
    about.update(numbers.tobytes())
    stream = _Stream(about.digest())
    sealed = []
    for keeper, share in zip(
        question.keepers, split(numbers, len(question.keepers), stream), strict=True
    ):
        plain = receipt_key(question, keeper.name, secret) + to_bytes(share)
        signature = sign(signed_text(question, member, keeper.name, plain))
        context = question.context(member, keeper.name)
        sealed.append(seal(keeper.public, plain + signature, context, stream(_PUBLIC)))
    return JointShares(sealed=tuple(sealed))


def signed_text(question: JointQuestion, member: str, keeper: str, plain: bytes) -> bytes:
    """What a member signs: its shares for one keeper of this very joint center."""
    return _SIGNED + sha256(question.context(member, keeper)).digest() + plain


def receipt_key(question: JointQuestion, keeper: str, secret: bytes) -> bytes:
    """What a member sends a keeper with its shares: the key of the receipt for what is opened."""
    keyed = blake2b(key=secret[:64], digest_size=RECEIPT, person=b"unpooled to keep")
    keyed.update(encoded(question) + keeper.encode())
    return keyed.digest()


class _Stream:
    """Random bytes that follow from a seed; no two calls give the same."""

    def __init__(self, seed: bytes) -> None:
        self._seed, self._calls = seed, 0

    def __call__(self, size: int) -> bytes:
        self._calls += 1
        return shake_256(self._seed + self._calls.to_bytes(8, "big")).digest(size)
