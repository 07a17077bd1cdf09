"""Which centers the coordinator hears from."""

from dataclasses import dataclass
from pathlib import Path

from unpooled.kits import read_federation
from unpooled.links.flare import connect


@dataclass(frozen=True, slots=True)
class Status:
    """Who is there and who is not."""

    federation: str
    address: str
    connected: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every center is connected."""
        return not self.missing

    def __str__(self) -> str:
        lines = [f"{self.federation}: the coordinator answers at {self.address}"]
        lines += [f"  {name}: connected" for name in self.connected]
        lines += [f"  {name}: not connected" for name in self.missing]
        return "\n".join(lines)


def federation_status(path: Path) -> Status:
    """Ask the coordinator which centers are connected."""
    federation = read_federation(path)
    link = connect(path, timeout=10.0)
    try:
        heard = link.connected()
    finally:
        link.close()
    connected = tuple(name for name in federation.centers if name in heard)
    missing = tuple(name for name in federation.centers if name not in heard)
    where = federation.coordinator
    return Status(federation.name, f"{where.address}:{where.port}", connected, missing)
