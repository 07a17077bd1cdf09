"""Names that were mistyped: which one was meant."""

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like it; None where none does.

    Examples
    --------
    >>> nearest("cpr", ["age", "crp"]), nearest("CRP", ["age", "crp"]), nearest("x", ["crp"])
    ('crp', 'crp', None)
    """
    from difflib import get_close_matches

    alike = {other.lower(): other for other in known}
    found = get_close_matches(name.lower(), alike, n=1)
    return alike[found[0]] if found else None


def unknown(what: str, name: str, known: Iterable[str], where: str = "") -> str:
    """Says that there is no such name, and which one was meant, or which there are.

    Examples
    --------
    >>> unknown("setting", "uni", ["unit", "lower"])
    "there is no setting 'uni'. Hint: did you mean 'unit'?"
    >>> unknown("setting", "colour", ["unit", "lower"])
    "there is no setting 'colour'. There are: unit, lower"
    """
    names = list(known)
    meant = nearest(name, names)
    hint = f"There are: {', '.join(names)}" if meant is None else f"Hint: did you mean {meant!r}?"
    return f"there is no {what} {name!r}{where}. {hint}"
