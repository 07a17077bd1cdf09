"""What is public about a variable: declared in Python, in a TOML codebook, or at the center."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from unpooled.errors import InputError


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The public facts of a variable. Nothing declared means nothing assumed.

    Examples
    --------
    >>> Variable(unit="days", resolution=1, lower=0)
    Variable(unit='days', resolution=1.0, lower=0.0, upper=None)
    """

    unit: str | None = None
    resolution: float | None = None  # values are multiples of this
    lower: float | None = None  # natural limits
    upper: float | None = None

    def __post_init__(self) -> None:
        for name in ("resolution", "lower", "upper"):
            value = getattr(self, name)
            if value is not None:
                msgspec.structs.force_setattr(self, name, float(value))
        if self.resolution is not None and not self.resolution > 0:
            raise InputError(f"resolution must be positive, got {self.resolution:g}")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise InputError(
                f"lower must be below upper, got lower={self.lower:g}, upper={self.upper:g}"
            )


Codebook = Mapping[str, Variable]


def read_codebook(path: str | Path) -> dict[str, Variable]:
    """Read a TOML file with one table per variable.

    The file looks like this::

        [los]
        unit = "days"
        resolution = 1
        lower = 0
    """
    try:
        return msgspec.toml.decode(Path(path).read_bytes(), type=dict[str, Variable])
    except OSError as error:
        raise InputError(f"codebook {str(path)!r} cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, InputError) as error:
        raise InputError(f"codebook {str(path)!r} is wrong: {error}") from error
