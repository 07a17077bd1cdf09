"""The authority of a federation: it signs everybody's certificate and keeps all keys."""

from pathlib import Path
from typing import Any

from nvflare.lighter.impl.cert import CertBuilder


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
