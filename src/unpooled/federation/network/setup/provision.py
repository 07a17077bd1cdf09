"""Makes certificates and settings for every participant, with the engine's own tool."""

import json
import os
import secrets
import shutil
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from unpooled.center.records.line_file import create_file
from unpooled.center.records.sealing import SealKey
from unpooled.errors import InputError, LinkError
from unpooled.federation.network.setup.kits import (
    KEEPER_KEY,
    Address,
    FederationFile,
    KitKeeper,
    Role,
    describe_kit,
    read_federation,
    user_name,
)
from unpooled.federation.network.setup.lockdown import (
    ANALYST,
    analyst_files,
    center_files,
    write_files,
)

COORDINATOR = "coordinator"  # the name in its certificate, whatever its address is
_ORGANISATION = "unpooled"
_KEEPERS = "keepers.json"  # what is public of them, for kits that are made later
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def make_kits(path: str | Path, out: str | Path | None = None) -> list[Path]:
    """Make a kit for every participant that has none yet; the new ones."""
    file = Path(path)
    who = read_federation(file)
    folder = file.absolute().parent / "kits" if out is None else Path(out).absolute()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    publics, new = _keeper_keys(who, folder)
    keepers = tuple(
        KitKeeper(name=k.name, address=k.address, port=k.port, public=publics[k.name])
        for k in who.keepers
    )
    made = _build(who, folder / "authority")
    roles: dict[str, Role] = {COORDINATOR: "coordinator"}
    roles.update((name, "center") for name in who.centers)
    roles.update((name, "analyst") for name in who.analysts)
    kits = []
    for name, role in roles.items():
        if not (folder / name).exists():
            draft = folder / f".{name}"
            shutil.rmtree(draft, ignore_errors=True)
            shutil.move(made / (user_name(name) if role == "analyst" else name), draft)
            _lock(draft, role, who)
            describe_kit(draft, name, role, who, file, keepers)
            if name in new:
                create_file(draft / KEEPER_KEY, new[name])
            kits.append(draft.rename(folder / name))
    shutil.rmtree(made)
    if new:
        public_file = folder / "authority" / _KEEPERS
        public_file.unlink(missing_ok=True)
        create_file(public_file, msgspec.json.encode(publics))
    return kits


def _keeper_keys(who: FederationFile, folder: Path) -> tuple[dict[str, str], dict[str, bytes]]:
    """The public keys of all keepers, and the private ones of those that have no kit yet."""
    file = folder / "authority" / _KEEPERS
    publics = msgspec.json.decode(file.read_bytes(), type=dict[str, str]) if file.exists() else {}
    new: dict[str, bytes] = {}
    for keeper in who.keepers:
        if keeper.name in publics:
            continue
        if (folder / keeper.name).exists():
            raise InputError(
                f"keepers: {keeper.name} has a kit already, made when it was no keeper. Hint: make "
                "the kits of a federation with a joint center in a new folder, with --out"
            )
        new[keeper.name] = secrets.token_bytes(32)
        publics[keeper.name] = SealKey(new[keeper.name]).public
    return publics, new


def _build(who: FederationFile, authority: Path) -> Path:
    """Let the engine's tool write its files; the folder it wrote to.

    `authority` keeps what signs the certificates, for centers that join later.
    """
    from nvflare.lighter.constants import CtxKey
    from nvflare.lighter.impl.static_file import StaticFileBuilder
    from nvflare.lighter.impl.workspace import WorkspaceBuilder
    from nvflare.lighter.provisioner import Provisioner

    from unpooled.federation.network.setup.certificates import Certificates, keep_to_owner

    builders = [
        WorkspaceBuilder(),
        StaticFileBuilder(config_folder="config", scheme="grpc"),
        Certificates(root_valid_days=who.days),
    ]
    authority.mkdir(mode=0o700, parents=True, exist_ok=True)
    words = _Words()
    before = os.umask(0o077)
    try:
        with redirect_stderr(StringIO()):  # it prints a stack trace, and says the same in words
            ctx = Provisioner(str(authority), builders).provision(_project(who), logger=words)
    finally:
        os.umask(before)
        keep_to_owner(authority)  # also what an earlier version wrote
    made = ctx.get(CtxKey.CURRENT_PROD_DIR)
    if ctx.get(CtxKey.BUILD_ERROR) or made is None:
        raise LinkError(f"the kits of {who.name!r} could not be made: {' '.join(words.errors)}")
    return Path(made)


def _project(who: FederationFile) -> Any:
    """The federation in the engine's terms."""
    from nvflare.lighter.entity import Project

    project = Project(who.name, "unpooled", props={"api_version": 3})
    port = who.coordinator.port
    host = {"fed_learn_port": port, "admin_port": port, "default_host": who.coordinator.address}
    project.set_server(COORDINATOR, _ORGANISATION, host)
    for name in who.centers:
        project.add_client(name, _ORGANISATION, {})
    for name in who.analysts:
        project.add_admin(user_name(name), _ORGANISATION, {"role": ANALYST})
    return project


class _Words:
    """Hears what the engine's tool says as it goes; only errors matter."""

    def __init__(self) -> None:
        self.errors: list[str] = []

    def error(self, message: str) -> None:
        """Called by the tool."""
        self.errors.append(message)

    def info(self, message: str) -> None:
        """Called by the tool."""

    debug = warning = info


def _lock(kit: Path, role: Role, who: FederationFile) -> None:
    """Put our settings in the place of the engine's, and take its scripts away."""
    for pattern in ("*.txt", "startup/*.sh", "startup/*.ipynb", "startup/*.txt", "local/*"):
        for path in kit.glob(pattern):
            path.unlink()
    match role:
        case "coordinator":
            _listen(kit / "startup" / "fed_server.json", who.coordinator)
        case "center":
            write_files(kit / "local", center_files())
        case "analyst":
            write_files(kit / "local", analyst_files())
    kit.chmod(0o700)


def _listen(settings: Path, where: Address) -> None:
    """Where the address is this machine alone, listen there alone."""
    if where.address in _LOOPBACK:
        content = json.loads(settings.read_text())
        for entry in content["servers"]:
            entry["service"]["target"] = f"{where.address}:{where.port}"
            entry["admin_server"] = where.address
        settings.write_text(json.dumps(content, indent=2) + "\n")
