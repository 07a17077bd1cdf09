"""Whether a center's people are still those that it described before.

A memory of answers says which rows they were about. So it holds for these rows alone: the same
people, in the same order, with the same values. Where one row differs, an old answer and a new one
together could tell about the person in it, whatever variable is asked for.
"""

import msgspec

from unpooled.center.data.sources import Source
from unpooled.center.policy import PerPerson, Policy
from unpooled.errors import LedgerError


class People(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows of a center, as far as answers may speak of them."""

    rows: int
    person: str | None
    per_person: PerPerson | None
    columns: dict[str, str]  # a fingerprint of each


def people_fingerprint(source: Source, policy: Policy, before: str | None = None) -> str:
    """One line of text that changes with a value, a row or the order of the rows.

    It covers all columns that the policy allows and the one that names a person; with an earlier
    fingerprint also the columns of that one, which the policy may allow no more. The order of the
    columns does not matter.

    Examples
    --------
    >>> import polars
    >>> from unpooled.center.data.sources import open_source
    >>> rows = polars.DataFrame({"los": [1.5, 2.0], "id": [1, 2]})
    >>> known = people_fingerprint(open_source(rows), Policy(person="id"))
    >>> known == people_fingerprint(open_source(rows), Policy(person="id"))
    True
    >>> people_changed(known, people_fingerprint(open_source(rows[:1]), Policy(person="id")))
    'there were 2 rows, now there are 1'
    """
    earlier = set() if before is None else set(_read(before).columns)
    names = [
        name
        for name in sorted(source.kinds)
        if policy.allows(name) or name == policy.person or name in earlier
    ]
    rows = (source.size, policy.person, policy.per_person)
    return msgspec.json.encode(People(*rows, source.fingerprints(names))).decode()


def people_changed(before: str, now: str) -> str | None:
    """What is different, in words for the steward; None where they are the same people.

    Columns that are new do no harm: all others are as they were, so the rows are the same. Whoever
    keeps `before` must keep `now` in its place then, or a new column could change without notice.
    """
    was, are = _read(before), _read(now)
    if was.rows != are.rows:
        return f"there were {was.rows} rows, now there are {are.rows}"
    if was.person != are.person:
        return f"a person was named by {was.person}, now by {are.person}"
    if was.per_person != are.per_person:
        return f"per_person was {was.per_person}, now it is {are.per_person}"
    gone = [name for name in was.columns if name not in are.columns]
    if gone:
        return f"columns are missing now: {', '.join(gone)}"
    changed = [name for name, mark in was.columns.items() if are.columns[name] != mark]
    if changed:
        order = ", or the order of the rows" if len(changed) > 1 else ""
        return f"values changed{order}, in {', '.join(changed)}"
    return None


def _read(fingerprint: str) -> People:
    try:
        return msgspec.json.decode(fingerprint, type=People)
    except msgspec.MsgspecError as error:
        raise LedgerError(f"this is no fingerprint of people: {error}") from error
