"""How a result came about: who was asked, under which K, and all that left for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from unpooled.center.policy import Policy
from unpooled.data.variables import Codebook
from unpooled.errors import MessageError
from unpooled.questions import decode_answer
from unpooled.results.releases import Releases


@dataclass(frozen=True, slots=True)
class Record:
    """The circumstances of a result."""

    centers: tuple[str, ...] = ()
    releases: Releases = field(default_factory=lambda: Releases(()))
    variables: Codebook = field(default_factory=dict)
    seed: int | None = None
    policy: Policy | None = None  # of centers in this process; others tell only their K

    @property
    def k(self) -> Mapping[str, int]:
        """The K that was in force at each center."""
        told = {}
        for release in self.releases:
            try:
                told[release.center] = decode_answer(release.payload).k
            except MessageError:
                continue
        return told

    def label(self, value: str) -> str:
        """A variable's name, with its unit where one is declared."""
        declared = self.variables.get(value)
        return value if declared is None or declared.unit is None else f"{value} ({declared.unit})"
