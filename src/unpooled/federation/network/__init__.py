"""The network engine, NVIDIA FLARE. Only in this package the engine's own words appear.

The engine's server is our coordinator, its clients are centers, its admin user is an analyst, its
job stays open for many questions, its task is one question, and its result is one release.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from unpooled.center.questions import Keeper
from unpooled.errors import InputError, LinkError
from unpooled.federation.progress import Show

if TYPE_CHECKING:
    from unpooled.federation.network.connection import FlareLink


def connect(path: str | Path, timeout: float = 60.0, progress: Show | None = None) -> "FlareLink":
    """The link to the centers of a `federation.toml`."""
    from unpooled.federation.network.setup.certificates import check_valid
    from unpooled.federation.network.setup.kits import find_analyst_kit, read_federation, read_kit

    if not timeout > 0:
        raise InputError(f"timeout must be positive, got {timeout:g}")
    federation = read_federation(path)
    kit = find_analyst_kit(path)
    whose = read_kit(kit, "analyst")
    keepers = [Keeper(name=keeper.name, public=keeper.public) for keeper in whose.keepers]
    check_valid(kit, "analyst")
    try:
        from unpooled.federation.network.connection import FlareLink
    except ImportError as error:
        raise LinkError(
            "the network needs NVIDIA FLARE. Hint: pip install 'unpooled[federation]'"
        ) from error
    return FlareLink(kit, whose.name, federation.centers, timeout, progress, keepers)
