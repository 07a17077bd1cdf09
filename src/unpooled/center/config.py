"""A center as its steward writes it down, in `center.toml`, and the center made from it.

The file looks like this::

    name = "Haifa"
    data = "stays.csv"
    ledger = "Haifa.ledger"
    approval = "auto"
    reviewers = 1                         # how many must approve, where it is "ask"
    ram_mb = 1000                         # how much memory answers may take
    tick = 0.25                           # answers leave at multiples of this many seconds

    [policy]
    k = 10
    variables = ["los", "procedure", "glucose"]

    [variables.los]
    unit = "days"
    resolution = 1
    lower = 0

    [variables.procedure]
    local = "OPCODE"                      # what the column is called here
    codes = { A12 = "PTCA", B07 = "CABG" }  # what is written here → what the study calls it

    [variables.glucose]
    unit = "mg/dL"
    factor = 18.016                       # recorded in mmol/L here

Instead of `data`, a table `[postgres]` with `connection` and `query` reads a database.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from unpooled.center import Center
from unpooled.center.approval.reviewers import Reviewers
from unpooled.center.approval.steward import Steward
from unpooled.center.data.postgres import Postgres, open_postgres
from unpooled.center.data.scratch import Scratch, check_ram
from unpooled.center.data.sources import Source, open_source
from unpooled.center.data.sql import literal, quote
from unpooled.center.data.variables import Variable
from unpooled.center.data.where import Kind
from unpooled.center.policy import Policy
from unpooled.center.records.keys import CenterKey, Hex64
from unpooled.errors import InputError, unknown
from unpooled.toml_file import read_toml

Code = str | int | float

TICK = 0.25  # seconds
_LONGEST_TICK = 60.0


class CenterVariable(Variable, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A variable of the study as this center has it: its public facts, and how to get there.

    Attributes
    ----------
    local
        The column's name at this center; the study's name if not said.
    codes
        What is written at this center → what the study calls it; anything else is missing.
    groups
        The values that the study has; anything else is missing.
    missing
        Values that stand for a missing one, such as 999. Where all others of a column of text
        are numbers, it becomes one of numbers.
    factor, offset
        The study's value is factor · local + offset.
    """

    local: str | None = None
    codes: dict[str, Code] | None = None
    groups: tuple[Code, ...] | None = None
    missing: tuple[Code, ...] = ()
    factor: float | None = None
    offset: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.codes is not None and not self.codes:
            raise InputError("codes must map at least one code, got none")
        if self.codes is not None and (self.factor is not None or self.offset is not None):
            raise InputError("codes do not go with factor or offset")

    @property
    def declared(self) -> Variable:
        """What is public about it."""
        facts = (field.name for field in msgspec.structs.fields(Variable))
        return Variable(**{name: getattr(self, name) for name in facts})


class CenterFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `center.toml` says."""

    name: str
    ledger: str
    data: str | None = None
    postgres: Postgres | None = None
    key: str | None = None  # the key file; next to the ledger if not said
    approval: Literal["auto", "ask"] = "auto"  # ask: the steward sees all before it leaves
    ram_mb: int = 1000  # how much memory answers may take
    reviewers: int = 1  # how many must approve, where it is "ask"
    reviewer_keys: dict[str, Hex64] = {}  # who may: name → public key; none: the steward
    tick: float = TICK  # over the network answers leave at multiples of this many seconds
    policy: Policy = msgspec.field(default_factory=Policy)
    variables: dict[str, CenterVariable] = {}

    def __post_init__(self) -> None:
        if (self.data is None) == (self.postgres is None):
            raise InputError("give either data, a CSV or Parquet file, or [postgres]")
        check_ram(self.ram_mb)
        self._check_reviewers()
        if not 0 < self.tick <= _LONGEST_TICK:
            raise InputError(f"tick must lie in (0, {_LONGEST_TICK:g}] seconds, got {self.tick:g}")

    def _check_reviewers(self) -> None:
        keys = self.reviewer_keys
        if self.reviewers < 1:
            raise InputError(f"reviewers must be at least 1, got {self.reviewers}")
        if self.approval != "ask" and (self.reviewers > 1 or keys):
            raise InputError('reviewers decide where the steward is asked: approval = "ask"')
        if len(set(keys.values())) < len(keys):
            raise InputError("reviewer_keys: two reviewers must not have one key")
        if self.reviewers > max(1, len(keys)):
            raise InputError(
                f"reviewers = {self.reviewers} needs as many names in [reviewer_keys], got "
                f"{len(keys)}. Hint: unpooled center reviewer KIT NAME makes a key for each"
            )


def read_center(path: str | Path) -> CenterFile:
    """Read and check `center.toml`."""
    return read_toml(path, CenterFile)


def open_rows(center: CenterFile, folder: Path) -> Source:
    """The center's rows, under its own names and codes; paths count from `folder`."""
    scratch = Scratch(center.ram_mb, folder)
    if center.postgres is not None:
        return open_postgres(center.postgres, scratch)
    return open_source(folder / str(center.data), scratch)


def open_data(center: CenterFile, folder: Path) -> Source:
    """The center's rows, under the study's names and codes; paths count from `folder`."""
    return translate(open_rows(center, folder), center.variables)


def open_center(
    center: CenterFile,
    folder: Path,
    keepers: Mapping[str, str] | None = None,
    sign_shares: Callable[[bytes], bytes] | None = None,
) -> Center:
    """The center with its rows, policy, key and ledger; paths count from `folder`.

    `keepers` are those of joint centers, by name, with their public keys; what is shared with them
    is signed by `sign_shares`.
    """
    ledger = folder / center.ledger
    key = ledger.with_suffix(".key") if center.key is None else folder / center.key
    source = open_data(center, folder)
    for problem in policy_problems(center.policy, source):
        raise InputError(f"policy: {problem}")
    declared = {name: variable.declared for name, variable in center.variables.items()}
    ledger.parent.mkdir(parents=True, exist_ok=True)
    loaded = CenterKey.load_or_create(key)
    steward = None
    if center.approval == "ask":
        steward = Steward(pending_folder(center, folder), who_reviews(center))
    about = declared, ledger, steward, keepers, sign_shares
    return Center(center.name, source, center.policy, loaded, *about)


def policy_problems(policy: Policy, source: Source) -> Iterator[str]:
    """What is wrong with the columns that a policy names; nothing, where all fit."""
    groupings = policy.groupings or {}
    person = () if policy.person is None else (policy.person,)
    for name in dict.fromkeys((*(policy.variables or ()), *person, *groupings)):
        if name not in source.kinds:
            yield unknown("column", name, source.kinds)
        elif groupings.get(name) and source.kinds[name] not in ("integer", "float"):
            yield f"the column {name!r} has no numbers, so its grouping has no cut points"


def pending_folder(center: CenterFile, folder: Path) -> Path:
    """Where what waits for the steward is kept."""
    return (folder / center.ledger).with_suffix(".pending")


def reviewers_folder(center: CenterFile, folder: Path) -> Path:
    """Where the reviewers' keys are kept, each sealed with a passphrase."""
    return (folder / center.ledger).with_suffix(".reviewers")


def who_reviews(center: CenterFile) -> Reviewers:
    """Who may let an answer leave, and how many of them must."""
    return Reviewers(center.name, center.reviewers, center.reviewer_keys)


def translate(source: Source, variables: Mapping[str, CenterVariable]) -> Source:
    """The same rows under the study's names, codes and units."""
    renamed = {variable.local or name for name, variable in variables.items()}
    for name, variable in variables.items():
        _check(name, variable, source.kinds)
    kept = [name for name in source.kinds if name not in renamed and name not in variables]
    columns = [quote(name) for name in kept]
    for name, variable in variables.items():
        columns.append(f"{_expression(name, variable, source)} AS {quote(name)}")
    return source.derived(f"(SELECT {', '.join(columns)} FROM {source.relation})")


def _check(name: str, variable: CenterVariable, kinds: Mapping[str, Kind]) -> None:
    local = variable.local or name
    if local not in kinds:
        raise InputError(f"variables: {name}: {unknown('column', local, kinds)}")
    if kinds[local] in ("integer", "float"):
        groups = variable.groups if variable.codes is None else None
        for code in (*variable.missing, *(variable.codes or ()), *(groups or ())):
            try:
                float(code)
            except ValueError:
                raise InputError(
                    f"variables: the column {local!r} is numeric; {code!r} cannot be one of "
                    "its codes"
                ) from None


def _expression(name: str, variable: CenterVariable, source: Source) -> str:
    """SQL for a variable's value in the study's terms."""
    local = variable.local or name
    value, kind = quote(local), source.kinds[local]
    if variable.missing:
        value = (
            f"(CASE WHEN {_is_one_of(value, variable.missing, kind)} THEN NULL ELSE {value} END)"
        )
        words = variable.codes is not None or variable.groups is not None
        if kind == "text" and not words and _are_numbers(source, value):
            value, kind = f"CAST({value} AS DOUBLE)", "float"
    if variable.codes is not None:
        cases = " ".join(
            f"WHEN {_is_one_of(value, (local,), kind)} THEN {_literal(study)}"
            for local, study in variable.codes.items()
        )
        value = f"(CASE {cases} END)"
    if variable.groups is not None:
        words_kind = "text" if variable.codes is not None else kind
        value = f"(CASE WHEN {_is_one_of(value, variable.groups, words_kind)} THEN {value} END)"
    if variable.factor is not None or variable.offset is not None:
        factor = 1.0 if variable.factor is None else variable.factor
        offset = 0.0 if variable.offset is None else variable.offset
        if kind == "text" and not _are_numbers(source, value):
            raise InputError(
                f"variables: {name} has a factor or an offset, and the column {local!r} has cells "
                "that are no numbers. Hint: missing = [...] names cells that mean nothing"
            )
        value = f"(CAST({value} AS DOUBLE) * {factor!r}::DOUBLE + {offset!r}::DOUBLE)"
    return value


def _are_numbers(source: Source, value: str) -> bool:
    """Whether all cells are numbers, and there are some; a column of text may become one so."""
    counts = f"count({value}), count(TRY_CAST({value} AS DOUBLE))"
    cells, numbers = source.rows(f"SELECT {counts} FROM {source.relation}")[0]
    return bool(cells == numbers > 0)


def _is_one_of(value: str, codes: Iterable[Code], kind: Kind) -> str:
    """SQL that compares numbers as numbers, so that 999 and 999.0 are one, and all else as text."""
    if kind in ("integer", "float"):
        return f"{value} IN ({', '.join(f'{float(code)!r}::DOUBLE' for code in codes)})"
    return f"CAST({value} AS VARCHAR) IN ({', '.join(_literal(str(code)) for code in codes)})"


def _literal(value: Code) -> str:
    return literal(value) if isinstance(value, str) else repr(value)
