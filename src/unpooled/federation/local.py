"""Centers in this process: the same bytes, the same gate, no network."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from unpooled.center import Center
from unpooled.center.data.sources import Source
from unpooled.center.data.variables import Codebook, check_declared
from unpooled.center.policy import Policy
from unpooled.center.records.keys import CenterKey
from unpooled.errors import InputError
from unpooled.federation.joint.local import LocalKeepers
from unpooled.federation.progress import Progress, Show


class LocalLink:
    """Hands a question's bytes to centers and brings the bytes of their releases back."""

    def __init__(
        self,
        centers: Sequence[Center],
        keepers: LocalKeepers | None = None,
        progress: Show | None = None,
    ) -> None:
        self.keepers = keepers
        self._progress = progress
        self._centers = {center.name: center for center in centers}

    @property
    def centers(self) -> tuple[str, ...]:
        """The names of the centers."""
        return tuple(self._centers)

    def ask(
        self, question: bytes, centers: Sequence[str], *, stewards: bool = True
    ) -> Mapping[str, bytes]:
        """Ask one center after the other; only a release's bytes come back."""
        payloads: dict[str, bytes] = {}
        for name in centers:
            self._tell(centers, payloads)
            payloads[name] = self._centers[name].answer(question).payload
        self._tell(centers, payloads)
        return payloads

    def _tell(self, asked: Sequence[str], answered: Iterable[str]) -> None:
        if self._progress is not None:
            self._progress(Progress(tuple(asked), tuple(answered)))

    def close(self) -> None:
        """Let go of the ledgers' files."""
        for center in self._centers.values():
            center.close()
        if self.keepers is not None:
            self.keepers.close()


def name_by_file(paths: Iterable[str | Path]) -> dict[str, object]:
    """Centers named after their files."""
    named: dict[str, object] = {}
    for path in paths:
        name = Path(path).stem
        if name in named:
            raise InputError(
                f"two centers are named {name!r}. Hint: give names, as in {{{name!r}: path, ...}}"
            )
        named[name] = path
    return named


def open_link(
    sources: Mapping[str, Source],
    policy: Policy,
    variables: Codebook | None,
    ledger: str | Path | None,
    seed: int | None,
    *,
    joint: bool = False,
    progress: Show | None = None,
) -> LocalLink:
    """A link to centers that are made here, one from each source."""
    if not sources:
        raise InputError("a federation needs at least one center, got none")
    if any(not str(name).strip() for name in sources):
        raise InputError("a center's name must not be empty. Hint: NAME=FILE, or {'NAME': data}")
    check_declared(variables, {name for source in sources.values() for name in source.kinds})
    folder = None if ledger is None else Path(ledger)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    files = {
        name: None if folder is None else folder / f"{quote(name, safe=' ')}.ledger"
        for name in sources
    }
    keys = {name: _key(name, file, seed) for name, file in files.items()}
    members = {name: key.public for name, key in keys.items()}
    keepers = LocalKeepers(members, seed, folder) if joint else None
    publics = {} if keepers is None else {k.name: k.public for k in keepers.keepers}
    centers = [
        Center(name, source, policy, keys[name], variables, files[name], keepers=publics)
        for name, source in sources.items()
    ]
    return LocalLink(centers, keepers, progress)


def _key(name: str, ledger: Path | None, seed: int | None) -> CenterKey:
    """A center's key: beside its ledger, where that is on disk."""
    if ledger is not None:
        return CenterKey.load_or_create(ledger.with_suffix(".key"))
    return CenterKey.generate() if seed is None else CenterKey.from_seed(seed, name)
