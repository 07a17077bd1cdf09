"""A center's key.

The key signs the ledger, and yields the secret that places the boundaries.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from unpooled.center.records.line_file import create_file, file_errors
from unpooled.errors import InputError, LedgerError

Hex64 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
"""32 bytes in lower-case hex: one spelling only, so that a changed letter is a changed value."""


class CenterKey:
    """The Ed25519 key of a center, and the boundary secret derived from it.

    >>> CenterKey.from_seed(1, "Haifa")
    CenterKey(public='0530bf88...')
    """

    __slots__ = ("_sign", "public", "secret")

    public: str
    """The public half in hex; safe to publish, needed to verify the ledger."""
    secret: bytes
    """32 bytes that key the boundaries; the private key cannot be computed from them."""

    def __init__(self, private: bytes) -> None:
        # cryptography is slow to import and not needed to `import unpooled`.
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        key = Ed25519PrivateKey.from_private_bytes(private)
        self._sign = key.sign
        self.public = key.public_key().public_bytes_raw().hex()
        self.secret = blake2b(key=private, digest_size=32, person=b"unpooled bounds").digest()

    @classmethod
    def generate(cls) -> "CenterKey":
        """A new random key."""
        return cls(os.urandom(32))

    @classmethod
    def from_seed(cls, seed: int, center: str) -> "CenterKey":
        """The same key every time: for demonstrations and tests, since anybody can compute it."""
        label = f"{seed} {center}".encode()
        return cls(blake2b(label, digest_size=32, person=b"unpooled seed").digest())

    @classmethod
    def load_or_create(cls, path: Path) -> "CenterKey":
        """The key in a file that its owner alone may read; made on first use."""
        with file_errors(f"key file {path} cannot be used"):
            if not path.exists():
                _create(path)
            return cls(_load(path))

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature of a message."""
        return self._sign(message)

    def __repr__(self) -> str:
        return f"CenterKey(public='{self.public[:8]}...')"


class _KeyFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is on disk. The public half is there to find a damaged private one."""

    format: Literal["unpooled key 1"]
    private: Hex64
    public: Hex64


def _create(path: Path) -> None:
    private = os.urandom(32)
    content = _KeyFile("unpooled key 1", private.hex(), CenterKey(private).public)
    with suppress(FileExistsError):  # another process was faster: its key is the center's
        create_file(path, msgspec.json.encode(content) + b"\n")


def _load(path: Path) -> bytes:
    content = path.read_bytes()
    mode = path.stat().st_mode & 0o777
    if os.name == "posix" and mode & 0o077:
        rule = "only its owner may read or write it"
        raise LedgerError(f"key file {path}: {rule}, got mode {mode:o}. Hint: chmod 600 {path}")
    hint = "Hint: restore it from a copy; a new key cannot continue the center's ledger."
    try:
        file = msgspec.json.decode(content, type=_KeyFile)
    except ValueError:  # the decoder's words may quote the key
        raise LedgerError(f"key file {path} is damaged: not a key of unpooled. {hint}") from None
    private = bytes.fromhex(file.private)
    if CenterKey(private).public != file.public:
        raise LedgerError(f"key file {path} is damaged: its two halves do not match. {hint}")
    return private


def verifier(public_key: str) -> Callable[[str, bytes], bool]:
    """A function that says whether a signature (hex) of a message is by the holder of a key.

    >>> key = CenterKey.from_seed(1, "Haifa")
    >>> is_signed = verifier(key.public)
    >>> is_signed(key.sign(b"yes").hex(), b"yes"), is_signed(key.sign(b"yes").hex(), b"no")
    (True, False)
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public_key))

    def is_signed(signature: str, message: bytes) -> bool:
        try:
            key.verify(bytes.fromhex(signature), message)
        except InvalidSignature:
            return False
        return True

    return is_signed


def check_hex64(argument: str, value: str | None) -> str | None:
    """A key or hash that a person may have typed, in lower case.

    >>> check_hex64("head", "3E4F")
    Traceback (most recent call last):
    unpooled.errors.InputError: head must be 64 hex digits, got '3E4F'
    """
    if value is None:
        return None
    cleaned = value.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{64}", cleaned):
        raise InputError(f"{argument} must be 64 hex digits, got {value!r}")
    return cleaned
