"""Names and texts as SQL writes them, and the words that mean that there is no value."""

from collections.abc import Iterable


def quote(name: str) -> str:
    """A column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal.

    Examples
    --------
    >>> literal("O'Brien")
    "'O''Brien'"
    """
    return "'" + text.replace("'", "''") + "'"


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
