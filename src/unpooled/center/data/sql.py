"""Names and texts as SQL writes them."""


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
