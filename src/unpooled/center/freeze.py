"""A freeze: a dated copy of a center's rows, from which it answers for a study.

A database changes while a study goes on, and so does an export that is written again. A center that
answered before a person came and again after could tell about that person, so it refuses once its
rows have changed. A freeze does not change. It is a Parquet file next to `center.toml`, with the
rows in the order in which they were read and under the center's own names: nothing else in
`center.toml` needs to change.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from datetime import date
from hashlib import file_digest
from itertools import pairwise
from pathlib import Path

from msgspec.structs import replace

from unpooled.center.config import CenterFile, open_rows, policy_problems, read_center, translate
from unpooled.center.data.scratch import Scratch
from unpooled.center.data.sources import Source, open_source
from unpooled.center.rule.fingerprint import people_changed, people_fingerprint
from unpooled.errors import InputError, SourceError, UnpooledError
from unpooled.toml_file import check_name


@dataclass(frozen=True, slots=True)
class Freeze:
    """A copy that was made: where it is, and what tells it from any other."""

    path: Path
    rows: int
    columns: tuple[str, ...]
    sha256: str

    @property
    def setting(self) -> str:
        """What `center.toml` must say for the center to answer from it."""
        return f'data = "{self.path.name}"'


def freeze_rows(config: Path, day: date) -> Freeze:
    """Copy the rows that `center.toml` names to a file next to it, whole or not at all.

    The copy has the columns that the policy allows, the one that names a person, and those that
    `center.toml` declares. It is read again and compared before it gets its name. Its owner alone
    may read it. An earlier copy is never written over.
    """
    center, folder = read_center(config), config.absolute().parent
    check_name("name", center.name)
    path = folder / f"{center.name}-{day.isoformat()}.parquet"
    if path.exists():
        raise _taken(path)
    rows = open_rows(center, folder)
    columns = _needed(center, rows)
    if not rows.size:
        raise SourceError("there are no rows, so there is nothing to freeze")
    try:
        draft = Path(tempfile.mkdtemp(prefix=".freeze-", dir=folder))  # mode 700
    except OSError as error:
        raise SourceError(f"{str(folder)!r} takes no files: {error.strerror}") from error
    try:
        copy = draft / path.name
        rows.write_parquet(columns, copy)
        _check_same(center, rows, copy)
        return Freeze(path, rows.size, columns, _publish(copy, path))
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def use_freeze(config: Path, freeze: Freeze) -> None:
    """Let `center.toml` name the copy; all else in it, comments too, stays as it is."""
    wanted = replace(read_center(config), data=freeze.path.name, postgres=None)
    file = config.resolve()
    draft = file.with_name(f".{file.name}.{os.urandom(4).hex()}")
    by_hand = InputError(
        f"{str(config)!r} could not be changed. Hint: write {freeze.setting} there"
    )
    try:
        text = file.read_bytes().decode()
        draft.write_bytes(_with_data(text, freeze.setting).encode())
        shutil.copymode(file, draft)
        if read_center(draft) != wanted:
            raise by_hand
        draft.replace(file)
    except (OSError, UnpooledError) as error:
        raise by_hand from error
    finally:
        draft.unlink(missing_ok=True)


def _needed(center: CenterFile, rows: Source) -> tuple[str, ...]:
    """The center's own names of the columns to keep, in their order."""
    names = translate(rows, center.variables)
    for problem in policy_problems(center.policy, names):
        raise InputError(f"policy: {problem}")
    policy, declared = center.policy, center.variables
    allowed = [name for name in names.kinds if policy.allows(name) or name == policy.person]
    plain = {name for name in allowed if name not in declared}
    kept = plain | {variable.local or name for name, variable in declared.items()}
    return tuple(name for name in rows.kinds if name in kept)


def _check_same(center: CenterFile, rows: Source, copy: Path) -> None:
    """Raise where the copy is not what the center would have answered from."""
    copied = open_source(copy, Scratch(center.ram_mb, copy.parent))
    before, now = (
        people_fingerprint(translate(source, center.variables), center.policy)
        for source in (rows, copied)
    )
    changed = people_changed(before, now)
    if changed is not None or not rows.unchanged():
        why = changed or "the file was written while it was read"
        raise SourceError(f"the copy differs from the data, so it was not kept: {why}")


def _publish(copy: Path, path: Path) -> str:
    """Give a copy its name; its SHA-256."""
    try:
        copy.chmod(0o600)
        with copy.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
            os.fsync(file.fileno())
        os.link(copy, path)  # unlike a rename, fails when there is such a file
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise SourceError(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return digest


def _taken(path: Path) -> InputError:
    return InputError(
        f"{str(path)!r} exists, and a freeze is never written over. "
        "Hint: answer from that one, or move it away first"
    )


_DATA = re.compile(r"""(?P<name>[ \t]*data[ \t]*=[ \t]*)("[^"\n]*"|'[^'\n]*')""")
_SETTING = re.compile(r"[ \t]*[A-Za-z_]+[ \t]*=")


def _with_data(text: str, setting: str) -> str:
    """The text of a `center.toml` with another data file, or one in the place of a database.

    Examples
    --------
    >>> print(_with_data('name = "Haifa"\\ndata = "a.csv"  # weekly', 'data = "b.parquet"'))
    name = "Haifa"
    data = "b.parquet"  # weekly
    >>> print(_with_data('name = "Haifa"\\n[postgres]\\nquery = "TABLE a"', 'data = "b.parquet"'))
    name = "Haifa"
    data = "b.parquet"
    # [postgres]
    # query = "TABLE a"
    """
    lines = text.splitlines(keepends=True)
    end = "\r\n" if "\r\n" in text else "\n"
    tables = [place for place, line in enumerate(lines) if line.lstrip().startswith("[")]
    top = range(tables[0] if tables else len(lines))
    for place in top:
        if match := _DATA.match(lines[place]):
            lines[place] = setting + lines[place][match.end() :]
            return "".join(lines)
    for start, stop in pairwise([*tables, len(lines)]):
        if lines[start].replace(" ", "").startswith("[postgres]"):
            for place in range(start, stop):
                if lines[place].strip() and not lines[place].lstrip().startswith("#"):
                    lines[place] = f"# {lines[place]}"
    last = max((place for place in top if _SETTING.match(lines[place])), default=-1)
    lines.insert(last + 1, f"{setting}{end}")
    return "".join(lines)
