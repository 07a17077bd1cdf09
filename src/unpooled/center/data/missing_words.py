"""Words by which programs write that there is no value, such as NA."""

from collections.abc import Iterable

from unpooled.center.data.sql import literal

_NOT_KNOWN = ("NA", "N/A", "#N/A", "NaN", "NULL", "Null", ".")

# as a status: neither yes nor no, while None may be an answer
UNKNOWN_WORDS = tuple(dict.fromkeys(w for word in _NOT_KNOWN for w in (word, word.lower())))

# among numbers, days and truth values
MISSING_WORDS = (*UNKNOWN_WORDS, "None", "none", "NONE", "NAN")


def words_sql(words: Iterable[str]) -> str:
    """A list of words as SQL.

    Examples
    --------
    >>> words_sql(["NA", "."])
    "('NA', '.')"
    """
    return f"({', '.join(map(literal, words))})"
