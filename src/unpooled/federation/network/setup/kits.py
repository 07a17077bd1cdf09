"""A federation as it is written down, and the kits of its participants.

`federation.toml` looks like this::

    name = "stay-study"
    centers = ["Haifa", "Bern", "Porto"]

    [coordinator]
    address = "coordinator.example.org"
    port = 8002

    [[keepers]]                    # of joint centers: none or three
    name = "Haifa"
    address = "haifa.example.org"  # where the others reach it; without, through the coordinator
    port = 8101

A kit is a folder that one participant gets, with the keys inside: hand it over safely.
"""

import re
from pathlib import Path
from typing import Literal

import msgspec

from unpooled.center.records.keys import Hex64
from unpooled.errors import InputError, unknown
from unpooled.maths.joint.shares import KEEPERS
from unpooled.toml_file import check_name, read_toml

Role = Literal["coordinator", "center", "analyst"]


KEEPER_KEY = "keeper.key"  # in the kit of a keeper: 32 bytes
_PLACE = "@unpooled.local"


def user_name(analyst: str) -> str:
    """The engine wants a mail address for a user."""
    return f"{analyst}{_PLACE}"


def analyst_name(user: str) -> str:
    """The analyst whose name the engine has.

    Examples
    --------
    >>> analyst_name(user_name("anna"))
    'anna'
    """
    return user.removesuffix(_PLACE)


class Address(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the coordinator can be reached."""

    address: str
    port: int = 8002

    def __post_init__(self) -> None:
        if not 1 <= self.port <= 65535:
            raise InputError(f"port must lie in 1..65535, got {self.port}")
        if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", self.address):
            raise InputError(f"address must be a host name or IPv4 address, got {self.address!r}")


class KeeperPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A center that keeps shares of joint centers; an address, where the other two reach it there.

    Without addresses keepers reach each other through the coordinator's engine.
    """

    name: str
    address: str | None = None
    port: int = 8003

    def __post_init__(self) -> None:
        if self.address is not None:
            Address(address=self.address, port=self.port)


class KitKeeper(KeeperPlace, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A keeper as kits know it: by the key that shares are sealed to."""

    public: Hex64


class FederationFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `federation.toml` says."""

    name: str = "federation"
    centers: tuple[str, ...]
    coordinator: Address
    analysts: tuple[str, ...] = ("analyst",)
    days: int = 360  # how long certificates are valid
    kit: str | None = None  # where the analyst's kit is; next to this file if not said
    keepers: tuple[KeeperPlace, ...] = ()  # of joint centers: three of the centers

    def __post_init__(self) -> None:
        if not self.centers:
            raise InputError("centers must name at least one center")
        if not self.analysts:
            raise InputError("analysts must name at least one analyst")
        check_name("name", self.name)
        names = (*self.centers, *self.analysts)
        for name in names:
            check_name("a center or analyst", name)
        if len({name.lower() for name in names}) != len(names):
            raise InputError(f"centers and analysts must have different names, got {list(names)}")
        self._check_keepers()
        if self.days < 1:
            raise InputError(f"days must be at least 1, got {self.days}")

    def _check_keepers(self) -> None:
        names = [keeper.name for keeper in self.keepers]
        for name in names:
            if name not in self.centers:
                raise InputError(f"keepers: {unknown('center', name, self.centers)}")
        if names and not len(set(names)) == len(names) == KEEPERS:
            raise InputError(f"keepers must name {KEEPERS} different centers, got {names}")
        places = [keeper.address for keeper in self.keepers]
        if None in places and any(places):
            raise InputError("keepers must have an address each, or none of them")


class Kit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `kit.toml` in a kit says: whose it is."""

    federation: str
    role: Role
    name: str
    address: str
    port: int
    centers: tuple[str, ...]
    keepers: tuple[KitKeeper, ...] = ()


def read_federation(path: str | Path) -> FederationFile:
    """Read and check `federation.toml`."""
    return read_toml(path, FederationFile)


def read_kit(folder: str | Path, role: Role) -> Kit:
    """Read whose kit a folder is, and check that it is one for this role."""
    path = Path(folder) / "kit.toml"
    if not path.is_file():
        raise InputError(f"{str(folder)!r} is not a kit: it has no kit.toml")
    kit = read_toml(path, Kit)
    if kit.role != role:
        whose = kit.role if kit.role == kit.name else f"{kit.role} {kit.name}"
        raise InputError(f"{str(folder)!r} is the kit of the {whose}, not of a {role}")
    return kit


def find_analyst_kit(path: str | Path) -> Path:
    """The analyst's kit that belongs to a `federation.toml`."""
    file = Path(path)
    federation = read_federation(file)
    folder = file.absolute().parent
    if federation.kit is not None:
        return folder / federation.kit
    beside = [folder, *(folder / "kits" / name for name in federation.analysts)]
    for kit in beside:
        if (kit / "kit.toml").is_file() and read_toml(kit / "kit.toml", Kit).role == "analyst":
            return kit
    raise InputError(
        f"no analyst's kit belongs to {str(path)!r}. "
        'Hint: say where it is, with kit = "FOLDER" in that file'
    )


def describe_kit(
    kit: Path,
    name: str,
    role: Role,
    federation: FederationFile,
    file: Path,
    keepers: tuple[KitKeeper, ...] = (),
) -> None:
    """Say in the kit whose it is, and what its holder needs besides the keys."""
    where = federation.coordinator
    described = Kit(
        federation=federation.name,
        role=role,
        name=name,
        address=where.address,
        port=where.port,
        centers=federation.centers,
        keepers=keepers,
    )
    (kit / "kit.toml").write_bytes(_toml(described))
    if role == "analyst":
        (kit / "federation.toml").write_bytes(file.read_bytes())
    if role == "center":
        (kit / "center.toml").write_text(_CENTER.format(name=name))


def _toml(kit: Kit) -> bytes:
    """Write the few kinds of values that a kit has."""
    lines = [line for line in _lines(kit) if not line.startswith("keepers = ")]
    for keeper in kit.keepers:
        lines += ["", "[[keepers]]", *_lines(keeper)]
    return ("\n".join(lines) + "\n").encode()


def _lines(written: msgspec.Struct) -> list[str]:
    """A line for each field: strings, numbers and lists are as in JSON."""
    names = [field.name for field in msgspec.structs.fields(type(written))]
    fields = [name for name in names if getattr(written, name) is not None]
    encoded = {name: msgspec.json.encode(getattr(written, name)).decode() for name in fields}
    return [f"{name} = {text}" for name, text in encoded.items()]


_CENTER = """\
# The center {name}. Say where the data are, then run: unpooled center check KIT
name = "{name}"
data = "data.csv"            # CSV or Parquet, next to this file; or [postgres] below instead
ledger = "{name}.ledger"     # what left, for ever; its key is made next to it
approval = "auto"            # or "ask": the steward sees every payload before it leaves
ram_mb = 1000                # memory that answers may take; what does not fit lies here on disk

[policy]
k = 10                       # every number describes at least that many people
# variables = ["los", "procedure"]
ad_hoc = "groupings"         # people are chosen by groupings alone; "free": by any condition
# Name the groupings; without them single questions are about everybody. Each is a column, [] for
# its levels, or the cut points of a number. Never a name, a number of a person, or a date.
# groupings = {{ sex = [], arm = [], age = [65] }}
# joint = "no"               # by default a center that is too small counts in a joint center
refusals_a_day = 200         # after this many, no answers until the next day (UTC)

# [postgres]
# connection = "host=localhost dbname=hospital user=reader"
# query = "SELECT los, procedure FROM stays ORDER BY stay_id"
# Rows must stay as they are while a study asks: unpooled center freeze KIT --use

# [variables.los]
# unit = "days"
# resolution = 1
# lower = 0
"""
