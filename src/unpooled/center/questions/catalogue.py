"""Which variables are there?"""

from collections.abc import Callable

from unpooled.center.data.where import Kind
from unpooled.center.questions.message import Message
from unpooled.errors import GateError


class CatalogueQuestion(Message, frozen=True, tag="catalogue", tag_field="ask"):
    """Which variables are there?"""


class Named(Message, frozen=True):
    """A variable's name and kind."""

    name: str
    kind: Kind


class Catalogue(Message, frozen=True, tag="catalogue", tag_field="say"):
    """The variables that may be asked for. It tells of nobody."""

    variables: tuple[Named, ...]

    def sentence(self) -> str:
        """What a steward reads."""
        return ", ".join(f"{variable.name} ({variable.kind})" for variable in self.variables)

    def check(self, allowed: Callable[[str], bool]) -> None:
        """Raise GateError unless the policy allows every variable."""
        if not all(map(allowed, (variable.name for variable in self.variables))):
            raise GateError("a catalogue may list only the variables that the policy allows")
