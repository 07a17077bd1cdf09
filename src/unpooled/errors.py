"""Everything unpooled raises, as a tree.

UnpooledError
├── InputError            an argument is wrong: names it, the rule, the value and a hint
│   └── WhereError        a `where` that does not parse; points at the place
├── SourceError           a center's rows cannot be read
├── GateError             an aggregate breaks the policy; it does not leave
├── HeldError             what would leave a center waits for its steward
├── LedgerError           a ledger is damaged; says where
├── LinkError             the coordinator cannot be reached, or the network engine fails
├── MessageError          bytes that are not a message
├── SealError             a sealed message was changed, is for another key, or belongs elsewhere
├── JointError            a joint center came to nothing; names the keeper or member
├── MissingError          a center is missing, and the analyst did not say to go on without it
└── RefusedError          no center could answer, or not enough; carries the refusals
"""

from collections.abc import Iterable
from typing import Any


class UnpooledError(Exception):
    """Base of all errors that unpooled raises on purpose."""


class InputError(UnpooledError, ValueError):
    """An argument is wrong."""


class WhereError(InputError):
    """A `where` that cannot be read; `str` shows the text with a mark under the place."""

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text = text
        self.position = position
        self.problem = problem
        super().__init__(
            f"where: {problem}, at position {position + 1}\n  {text}\n  {' ' * position}^"
        )


class SourceError(UnpooledError):
    """A center's rows cannot be read. Raised to the owner of the rows, never across the gate."""


class GateError(UnpooledError):
    """An aggregate breaks the policy. It stays at the center."""


class HeldError(UnpooledError):
    """A payload waits for the steward: nothing has left, nothing is recorded yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"{name} waits for the steward")


class LedgerError(UnpooledError):
    """A ledger is damaged or cannot be written."""


class LinkError(UnpooledError):
    """The coordinator cannot be reached, or the network engine fails."""


class MessageError(UnpooledError):
    """Bytes that do not decode to a message."""


class SealError(UnpooledError):
    """A sealed message that cannot be opened where it arrived."""


class JointError(UnpooledError):
    """A joint center came to nothing. `names` are the keepers or members that are to blame."""

    def __init__(self, message: str, names: tuple[str, ...] = ()) -> None:
        self.names = names
        super().__init__(message)


class MissingError(UnpooledError):
    """A center is missing. `refusals` says which and why; the others' answers are kept."""

    def __init__(self, message: str, refusals: tuple[Any, ...] = ()) -> None:
        self.refusals = refusals
        super().__init__(message)


class RefusedError(UnpooledError):
    """No center could answer, or what they released is not enough. `refusals` says who and why."""

    def __init__(self, message: str, refusals: tuple[Any, ...] = ()) -> None:
        self.refusals = refusals
        super().__init__(message)


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name that looks most like it; None where none does.

    Examples
    --------
    >>> nearest("cpr", ["age", "crp"]), nearest("CRP", ["age", "crp"]), nearest("x", ["crp"])
    ('crp', 'crp', None)
    """
    from difflib import get_close_matches

    alike = {other.lower(): other for other in names}
    close = get_close_matches(name.lower(), alike, n=1)
    return alike[close[0]] if close else None


def unknown(what: str, name: str, others: Iterable[str], where: str = "") -> str:
    """Says that there is no such name, and which one was meant, or which there are.

    Examples
    --------
    >>> unknown("setting", "uni", ["unit", "lower"])
    "there is no setting 'uni'. Hint: did you mean 'unit'?"
    >>> unknown("setting", "colour", ["unit", "lower"])
    "there is no setting 'colour'. There are: unit, lower"
    """
    names = list(others)
    meant = nearest(name, names)
    hint = f"There are: {', '.join(names)}" if meant is None else f"Hint: did you mean {meant!r}?"
    return f"there is no {what} {name!r}{where}. {hint}"
