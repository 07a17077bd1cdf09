"""The fields of a form, read in full and bounded. There are no uploads of files: text is pasted."""

from urllib.parse import parse_qs

from unpooled.errors import InputError

MOST_FIELDS = 20_000


def read_fields(body: bytes) -> dict[str, list[str]]:
    """The fields of a form that a browser sent, each with all its values.

    Examples
    --------
    >>> read_fields(b"by=arm&variable=crp&variable=age")
    {'by': ['arm'], 'variable': ['crp', 'age']}
    """
    try:
        text = body.decode("ascii")
        return parse_qs(text, keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise InputError(f"the form cannot be read: {error}") from error
