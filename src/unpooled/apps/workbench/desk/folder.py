"""The folder of a center, as its steward opens it: a kit, or any folder with a center.toml."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from unpooled.center.approval.reviewers import Reviewers
from unpooled.center.check import Finding, center_findings
from unpooled.center.config import (
    CenterFile,
    pending_folder,
    read_center,
    reviewers_folder,
    who_reviews,
)
from unpooled.center.records.keys import CenterKey
from unpooled.errors import InputError


@dataclass(frozen=True, slots=True)
class CenterFolder:
    """Where a center's files are."""

    folder: Path
    config: Path
    is_kit: bool

    @classmethod
    def open(cls, folder: Path, config: Path | None = None) -> "CenterFolder":
        """The folder, once its center.toml could be read."""
        path = (folder / "center.toml" if config is None else config).absolute()
        if not path.is_file():
            raise InputError(f"there is no center.toml in {str(folder)!r}. Hint: name it: --config")
        is_kit = (folder / "kit.toml").is_file()
        if is_kit:
            from unpooled.federation.network.setup.kits import read_kit

            read_kit(folder, "center")
        read_center(path)
        return cls(folder.absolute(), path, is_kit)

    def center(self) -> CenterFile:
        """What center.toml says now."""
        return read_center(self.config)

    @property
    def pending(self) -> Path:
        """Where what waits is kept; made, where the center has not started yet."""
        path = pending_folder(self.center(), self.config.parent)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    @property
    def reviewers(self) -> Reviewers:
        """Who may decide."""
        return who_reviews(self.center())

    @property
    def keys(self) -> Path:
        """Where the reviewers' keys are."""
        return reviewers_folder(self.center(), self.config.parent)

    @property
    def ledger(self) -> Path:
        """Where the ledger is, or will be."""
        return self.config.parent / self.center().ledger

    def public_key(self) -> str | None:
        """The center's public key, if it has one yet."""
        center = self.center()
        file = self.ledger.with_suffix(".key")
        file = file if center.key is None else self.config.parent / center.key
        return CenterKey.load_or_create(file).public if file.exists() else None

    def findings(self) -> Sequence[Finding]:
        """What the data check says; of a kit also what the network needs."""
        if self.is_kit:
            from unpooled.federation.network.setup.check import check_center

            return check_center(self.folder, self.config)
        return list(center_findings(self.center(), self.config.parent))
