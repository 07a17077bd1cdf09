"""A participant's certificate: whose it is, who signed it, and how long it is valid.

A center signs what it shares with a joint center by the key of its certificate. Keepers need no
list of such keys: a certificate shows that the authority gave it to the center of that name.
"""

import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from nvflare.lighter.impl.cert import CertBuilder

from unpooled.errors import InputError, LinkError
from unpooled.toml_file import check_name

_FILES = {"center": "client", "analyst": "client", "coordinator": "server"}


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a kit's certificate says."""

    name: str
    since: datetime
    until: datetime

    @property
    def early(self) -> str | None:
        """What is wrong where this computer's clock says a time before the certificate begins."""
        if now() >= self.since:
            return None
        return (
            f"it is valid from {_minute(self.since)}, and this computer's clock says "
            f"{_minute(now())}: the clocks of this computer and of the one that made the kit "
            "differ. Hint: set the clock"
        )

    @property
    def days(self) -> int:
        """How many days are left; negative once it has expired."""
        return (self.until - now()).days


def now() -> datetime:
    """The time that certificates are judged by."""
    return datetime.now(UTC)


def _minute(moment: datetime) -> str:
    return f"{moment:%d %B %Y %H:%M} UTC"


def read_certificate(kit: Path, role: str) -> Certificate:
    """A kit's certificate, signed by the federation's own authority."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.x509.oid import NameOID

    startup = kit / "startup"
    try:
        certificate = x509.load_pem_x509_certificate((startup / f"{_FILES[role]}.crt").read_bytes())
        root = x509.load_pem_x509_certificate((startup / "rootCA.pem").read_bytes())
        certificate.verify_directly_issued_by(root)
        name = str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
    except (OSError, ValueError, TypeError, IndexError, InvalidSignature) as error:
        raise LinkError(
            "the certificate is missing, damaged or of another federation. "
            "Hint: ask whoever runs the coordinator for a new kit"
        ) from error
    since = max(certificate.not_valid_before_utc, root.not_valid_before_utc)
    return Certificate(name, since, min(certificate.not_valid_after_utc, root.not_valid_after_utc))


def check_valid(kit: Path, role: str) -> None:
    """Raise where nobody would let this kit in any more."""
    certificate = read_certificate(kit, role)
    if certificate.early is not None:
        raise LinkError(f"the certificate in {str(kit)!r}: {certificate.early}")
    if certificate.days < 0:
        raise LinkError(
            f"the certificate in {str(kit)!r} expired on {certificate.until:%d %B %Y}. "
            "Hint: ask whoever runs the coordinator for a new kit"
        )


def client_context(kit: Path) -> ssl.SSLContext:
    """How a center speaks to its coordinator: each shows a certificate of the same authority."""
    startup = kit / "startup"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # the coordinator's certificate has its role, not its address
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    context.load_verify_locations(startup / "rootCA.pem")
    context.load_cert_chain(startup / "client.crt", startup / "client.key")
    context.set_alpn_protocols(["h2"])
    return context


class _Signature(msgspec.Struct, frozen=True):
    """A signature, and the certificate (DER) that says whose key made it."""

    certificate: bytes
    signature: bytes


def share_signer(kit: Path) -> Callable[[bytes], bytes]:
    """How the center of a kit signs: the same message alike each time."""
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

    startup = kit / "startup"
    try:
        key = load_pem_private_key((startup / "client.key").read_bytes(), None)
        certificate = x509.load_pem_x509_certificate((startup / "client.crt").read_bytes())
    except (OSError, ValueError, TypeError) as error:
        raise LinkError(f"the key in {str(kit)!r} cannot be read: {error}") from error
    assert isinstance(key, RSAPrivateKey)  # the engine's tool makes no others
    der = certificate.public_bytes(Encoding.DER)

    def sign(message: bytes) -> bytes:
        return msgspec.msgpack.encode(_Signature(der, key.sign(message, PKCS1v15(), SHA256())))

    return sign


def is_signed_by_center(kit: Path) -> Callable[[str, bytes, bytes], bool]:
    """Whether a center of the kit's federation, by its name, signed a message.

    The coordinator and analysts have certificates, too, but no names that a center may have.
    """
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.x509.oid import NameOID

    root = x509.load_pem_x509_certificate((kit / "startup" / "rootCA.pem").read_bytes())

    def is_signed(center: str, message: bytes, signature: bytes) -> bool:
        try:
            check_name("a member", center)
            signed = msgspec.msgpack.decode(signature, type=_Signature)
            certificate = x509.load_der_x509_certificate(signed.certificate)
            certificate.verify_directly_issued_by(root)
            names = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            key = certificate.public_key()
            if [name.value for name in names] != [center] or not isinstance(key, RSAPublicKey):
                return False
            key.verify(signed.signature, message, PKCS1v15(), SHA256())
        except (InputError, InvalidSignature, msgspec.MsgspecError, ValueError, TypeError):
            return False
        return True

    return is_signed


class Certificates(CertBuilder):
    """The engine's builder of certificates, all of which end with the authority's own.

    The engine's are valid for 360 days at most, whatever the authority's are.
    """

    def _generate_cert(self, *arguments: Any, **settings: Any) -> Any:
        if not settings.get("ca"):
            settings["not_valid_after"] = self.root_cert.not_valid_after_utc
        return CertBuilder._generate_cert(*arguments, **settings)


def keep_to_owner(folder: Path) -> None:
    """Close a folder, and all that is in it, to everybody but its owner."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
