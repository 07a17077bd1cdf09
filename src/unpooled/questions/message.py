"""What every message has in common."""

from typing import Literal

import msgspec

Limits = Literal["open", "natural", "buffer"]
CellMoments = Literal["none", "tails", "all"]  # which cells tell mean and SD
EVERYBODY = "all"  # the one group of a question without `by`


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A frozen message; unknown fields are an error."""
