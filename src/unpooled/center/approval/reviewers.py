"""Reviewers: who may let an answer leave, each with a key of their own behind a passphrase.

Without reviewers whoever can write in the center's folder is its steward. With them an approval
counts only with the signature of a reviewer whom `center.toml` names::

    approval = "ask"
    reviewers = 2                         # how many must approve, and nobody twice

    [reviewer_keys]
    Anna = "0530bf88…"                    # made by: unpooled center reviewer KIT Anna
    Ben = "9d1c77e0…"

The private half lies in `NAME.reviewers/Anna.json`, sealed with Anna's passphrase. A center reads
`center.toml` when it starts, so a name that is added later does not count before.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import scrypt
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from unpooled.center.records.keys import CenterKey, Hex64, verifier
from unpooled.center.records.line_file import create_file, file_errors
from unpooled.errors import InputError, LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

SHORTEST_PASSPHRASE = 12
_COST = 2**16  # of scrypt: a guess of a passphrase takes 64 MB and some tenths of a second
_NAME = re.compile(r"[^\W_](?:[\w .'-]{0,38}[^\W_])?")


@dataclass(frozen=True, slots=True)
class Reviewers:
    """How many must approve at a center, and who they are; nobody named: its steward alone."""

    center: str = ""
    needed: int = 1
    keys: Mapping[str, str] = field(default_factory=dict)  # name → public key

    def vouch(self, name: str | None, decision: str, payload: str, signature: str | None) -> bool:
        """Whether a decision on a payload is by one of them."""
        if not self.keys:
            return True
        if name is None or signature is None or name not in self.keys:
            return False
        return verifier(self.keys[name])(signature, _signed(self.center, decision, payload))


STEWARD = Reviewers()


@dataclass(frozen=True, slots=True)
class Reviewer:
    """A person who has given their passphrase."""

    name: str
    public: str
    private: bytes = field(repr=False)

    def sign(self, center: str, decision: str, payload: str) -> str:
        """The signature, in hex, of a decision on the payload of this name."""
        return CenterKey(self.private).sign(_signed(center, decision, payload)).hex()


class _ReviewerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["unpooled reviewer 1"]
    name: str
    public: Hex64
    salt: str
    sealed: str  # nonce and private key, by ChaCha20-Poly1305 under scrypt of the passphrase


def check_reviewer_name(name: str) -> None:
    """Raise InputError unless a name can be that of a file and of a person."""
    if not _NAME.fullmatch(name):
        rule = "must have 1 to 40 letters, digits, spaces, dots or hyphens"
        raise InputError(f"a reviewer's name {rule}, got {name!r}")


def make_reviewer(folder: Path, name: str, passphrase: str) -> Reviewer:
    """Make a reviewer's key, and put it into a folder; never over another one."""
    check_reviewer_name(name)
    if len(passphrase) < SHORTEST_PASSPHRASE:
        raise InputError(f"the passphrase must have {SHORTEST_PASSPHRASE} letters or more")
    private, salt, nonce = os.urandom(32), os.urandom(16), os.urandom(12)
    public = CenterKey(private).public
    sealed = nonce + _cipher(passphrase, salt).encrypt(nonce, private, name.encode())
    file = _ReviewerFile("unpooled reviewer 1", name, public, salt.hex(), sealed.hex())
    path = _path(folder, name)
    with file_errors(f"{path} cannot be written"):
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            create_file(path, msgspec.json.encode(file) + b"\n")
        except FileExistsError:
            raise InputError(f"{name!r} has a key already: {path}") from None
    return Reviewer(name, public, private)


def unlock_reviewer(folder: Path, name: str, passphrase: str) -> Reviewer:
    """The reviewer of this name; raises InputError, which does not say whether name or passphrase
    is wrong."""
    from cryptography.exceptions import InvalidTag

    wrong = InputError("name or passphrase is wrong")
    if not _NAME.fullmatch(name):
        raise wrong
    path = _path(folder, name)
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_ReviewerFile)
    except FileNotFoundError:
        raise wrong from None
    except (OSError, msgspec.MsgspecError):
        raise LedgerError(f"{path} is not a reviewer's key") from None
    try:
        salt, sealed = bytes.fromhex(file.salt), bytes.fromhex(file.sealed)
        private = _cipher(passphrase, salt).decrypt(sealed[:12], sealed[12:], name.encode())
    except (InvalidTag, ValueError):
        raise wrong from None
    if CenterKey(private).public != file.public:
        raise LedgerError(f"{path} is damaged: its two halves do not match")
    return Reviewer(name, file.public, private)


def _cipher(passphrase: str, salt: bytes) -> "ChaCha20Poly1305":
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

    secret = scrypt(passphrase.encode(), salt=salt, n=_COST, r=8, p=1, maxmem=2**27, dklen=32)
    return ChaCha20Poly1305(secret)


def with_reviewer(text: str, reviewer: Reviewer) -> str:
    """The text of a `center.toml` that names one more reviewer.

    Examples
    --------
    >>> anna = Reviewer("Anna", "ab" * 32, b"")
    >>> print(with_reviewer('name = "Haifa"', anna)[:50])
    name = "Haifa"
    <BLANKLINE>
    [reviewer_keys]
    "Anna" = "abababab
    """
    line = f'{msgspec.json.encode(reviewer.name).decode()} = "{reviewer.public}"\n'
    lines = text.splitlines(keepends=True)
    for place, old in enumerate(lines):
        if old.replace(" ", "").startswith("[reviewer_keys]"):
            lines[place] = old if old.endswith("\n") else f"{old}\n"
            return "".join([*lines[: place + 1], line, *lines[place + 1 :]])
    return f"{text.rstrip()}\n\n[reviewer_keys]\n{line}"


def _path(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def _signed(center: str, decision: str, payload: str) -> bytes:
    return msgspec.json.encode(["unpooled review", center, decision, payload])
