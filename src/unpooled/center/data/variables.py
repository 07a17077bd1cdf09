"""What is public about a variable: declared in Python, in a TOML codebook, or at the center."""

from collections.abc import Collection, Mapping
from math import inf, isfinite
from pathlib import Path

import msgspec

from unpooled.errors import InputError, unknown
from unpooled.maths.lattice.lattice import Lattice, is_multiple, public_lattice
from unpooled.toml_file import convert, read_tables


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The public facts of a variable. Nothing declared means nothing assumed.

    Examples
    --------
    >>> Variable(unit="days", resolution=1, lower=0)
    Variable(unit='days', resolution=1.0, lower=0.0, upper=None, scale=None, atoms=())
    """

    unit: str | None = None
    resolution: float | None = None  # values are multiples of this
    lower: float | None = None  # natural limits
    upper: float | None = None
    scale: float | None = None  # how far values spread: their standard deviation, roughly
    atoms: tuple[float, ...] = ()  # values that many people share, such as 0

    def __post_init__(self) -> None:
        for name in ("resolution", "lower", "upper", "scale"):
            value = getattr(self, name)
            if value is not None:
                msgspec.structs.force_setattr(self, name, _number(name, value))
        atoms = tuple(_number("atoms", atom) for atom in self.atoms)
        msgspec.structs.force_setattr(self, "atoms", tuple(sorted(set(atoms))))
        for name in ("resolution", "scale"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be positive, got {value:g}")
        if self.lower is not None and self.upper is not None and not self.lower < self.upper:
            raise InputError(
                f"lower must be below upper, got lower={self.lower:g}, upper={self.upper:g}"
            )
        self._check_atoms()

    def _check_atoms(self) -> None:
        """An atom must be a value that the variable can take."""
        lower = -inf if self.lower is None else self.lower
        upper = inf if self.upper is None else self.upper
        for atom in self.atoms:
            if not lower <= atom <= upper:
                raise InputError(f"atoms must lie within lower and upper, got {atom:g}")
            if self.resolution is not None and not is_multiple(atom, self.resolution):
                raise InputError(
                    f"atoms must be multiples of resolution={self.resolution:g}, got {atom:g}"
                )

    def lattice(self, scale: float, resolution: float | None = None) -> Lattice:
        """The public lattice of a variable with this scale.

        `resolution` is that of the values; a declared one goes before it.

        Examples
        --------
        >>> Variable(resolution=1, lower=0).lattice(14).step
        1.0
        >>> Variable(lower=0).lattice(14, 2).atoms
        (0.0,)
        """
        if self.resolution is not None or resolution is None:
            return public_lattice(scale, self.resolution, self.lower, self.upper, self.atoms)
        limits = (limit for limit in (self.lower, self.upper) if limit is not None)
        atoms = {*self.atoms, *(limit for limit in limits if is_multiple(limit, resolution))}
        return public_lattice(scale, resolution, self.lower, self.upper, sorted(atoms))

    def follow_up_lattice(
        self, scale: float, horizon: float, resolution: float | None = None
    ) -> Lattice:
        """The same for times from 0 to a horizon, where all stand who are followed up longer.

        Examples
        --------
        >>> Variable().follow_up_lattice(14, 60.0).atoms
        (0.0, 60.0)
        """
        atoms = sorted({atom for atom in self.atoms if 0 < atom < horizon} | {0.0, horizon})
        return public_lattice(scale, self.resolution or resolution, 0.0, horizon, atoms)

    def may_have(self, resolution: float, horizon: float | None = None) -> bool:
        """Whether atoms, and a horizon, are multiples of this resolution.

        Examples
        --------
        >>> Variable(atoms=(0.5,)).may_have(1), Variable(atoms=(0.5,)).may_have(0.1)
        (False, True)
        """
        stands = self.atoms if horizon is None else (*self.atoms, horizon)
        return all(is_multiple(value, resolution) for value in stands)


def _number(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}")
    return float(value)


Codebook = Mapping[str, Variable]


def read_codebook(path: str | Path) -> dict[str, Variable]:
    """Read a TOML file with one table per variable.

    The file looks like this::

        [los]
        unit = "days"
        resolution = 1
        lower = 0
        atoms = [0]
    """
    try:
        tables = read_tables(path)
    except InputError as error:
        raise InputError(f"codebook {error}") from error
    codebook = {}
    for name, table in tables.items():
        try:
            codebook[name] = convert(table, Variable)
        except InputError as error:
            raise InputError(f"codebook {str(path)!r} is wrong at [{name}]: {error}") from error
    return codebook


def check_codebook(variables: Codebook | None) -> dict[str, Variable]:
    """The same codebook; an error where something else than a `Variable` is declared."""
    for name, declared in (variables or {}).items():
        if not isinstance(declared, Variable):
            raise InputError(
                f"variables must map names to Variable, got {type(declared).__name__} for "
                f"{name!r}. Hint: variables={{{name!r}: unpooled.Variable(lower=0)}}"
            )
    return dict(variables or {})


def check_declared(variables: Codebook | None, columns: Collection[str]) -> None:
    """Raise where a codebook declares a variable that no center has."""
    for name in variables or ():
        if name not in columns:
            raise InputError(f"codebook: {unknown('variable', name, sorted(columns))}")
