"""The words that the desk says, from one file; names from elsewhere are escaped and set apart."""

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files

from markupsafe import Markup

_HERE = "unpooled.apps.workbench.in_words"


class Words:
    """Texts by their keys, such as `inbox.lead`.

    Examples
    --------
    >>> words = Words("en")
    >>> words("question.sizes", variable=name("<crp>"), people="")
    Markup('How many people have a value of <bdi>&lt;crp&gt;</bdi>?')
    >>> words.number("people", 1), words.number("people", 1200)
    (Markup('1 person'), Markup('1,200 people'))
    """

    def __init__(self, language: str = "en") -> None:
        self.texts = read_texts(language)

    def __call__(self, key: str, **values: object) -> Markup:
        """The text of a key, with what is filled in."""
        return Markup(Markup.escape(self.texts[key])).format(**values)

    def has(self, key: str) -> bool:
        """Whether there is a text of this key."""
        return key in self.texts

    def number(self, key: str, n: int, **values: object) -> Markup:
        """A text that counts something."""
        return self(f"number.{key}-{'one' if n == 1 else 'many'}", n=f"{n:,}", **values)


def name(text: object) -> Markup:
    """A name from a study or a center: escaped, and its direction kept to itself."""
    return Markup("<bdi>{}</bdi>").format(str(text))


def names(texts: Iterable[object]) -> Markup:
    """Several names."""
    return Markup(", ").join(map(name, texts))


@cache
def read_texts(language: str) -> Mapping[str, str]:
    """Key → text."""
    path = files(_HERE) / "texts" / f"{language}.toml"
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {f"{table}.{key}": text for table, some in tables.items() for key, text in some.items()}
