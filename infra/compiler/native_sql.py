"""The subset of Spark SQL that gives the same value in Spark and in the runtime's tasks.

Outside of it their types differ (`docs/expressions.md`): Spark has decimals, 32-bit integers and Java's
regular expressions. No expression of the subset can fail, so no record is invalid in only one of the two.
Expressions are typed as string, bytes, integer or boolean; type errors are not in the subset.
"""

import re
from collections.abc import Mapping
from enum import Enum, auto
from functools import lru_cache

import attrs


class Kind(Enum):
    """The type of an expression's value; every kind includes null."""

    TEXT = auto()
    BYTES = auto()
    WHOLE = auto()
    FLAG = auto()


_T, _W, _F = Kind.TEXT, Kind.WHOLE, Kind.FLAG
_FUNCTIONS: Mapping[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(("upper", "ucase", "lower", "lcase"), ((_T,), _T)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim", "reverse"), ((_T,), _T)),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), ((_T,), _W)),
    **dict.fromkeys(("contains", "startswith", "endswith"), ((_T, _T), _F)),
    "instr": ((_T, _T), _W),
    "replace": ((_T, _T, _T), _T),
    "translate": ((_T, _T, _T), _T),
    "nullif": ((_T, _T), _T),
}
"""Function → kinds of the arguments, kind of the result."""
_WITH_NUMBERS: Mapping[str, tuple[int, ...]] = {
    "left": (1,), "right": (1,), "substr": (1, 2), "substring": (1, 2),
}  # fmt: skip
"""Function of a string → allowed numbers of integer literals."""
_CHOOSING = {"coalesce", "ifnull", "nvl"}
_RECORD = {"topic": _T, "partition": _W, "offset": _W, "timestamp": _W}
_COMPARISONS = {"=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"}
_WORDS = {
    "and", "between", "case", "else", "end", "false", "in", "is", "like", "not", "null", "or", "then", "true",
    "when",
}  # fmt: skip
_TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^'\\]*')|(?P<whole>[0-9]{1,9})(?![\w.])|(?P<word>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\|\||<=>|<=|>=|<>|!=|==|[=<>(),%-]))"
)
_MOST_CHARACTERS = 2_000
_MOST_LEVELS = 30


class _UnsupportedError(Exception):
    pass


@lru_cache(maxsize=8192)
def kind_of(text: str, key: Kind, value: Kind) -> Kind | None:
    """Return the kind of the expression `text`, given the kinds of `key` and `value`.

    None = the expression is not in the subset.
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        reader = _Reader(_tokens(text), {**_RECORD, "key": key, "value": value})
        kind = reader.condition()
        reader.expect("end", "")
    except _UnsupportedError:
        return None
    return kind


_Token = tuple[str, str]
"""Token type (`text`, `whole`, `name`, `keyword`, `sign` or `end`) and text."""


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise _UnsupportedError
        kind, word = match.lastgroup, match[match.lastgroup]
        if kind == "word":
            is_keyword = word.lower() in _WORDS
            kind, word = ("keyword", word.lower()) if is_keyword else ("name", word)
        found.append((kind, word))
        at = match.end()
    return [*found, ("end", "")]


@attrs.define
class _Reader:
    """A recursive descent parser with Spark's precedence: or, and, not, predicates, `||`, `%`."""

    tokens: list[_Token]
    names: Mapping[str, Kind]
    at: int = 0
    level: int = 0

    def take(self, kind: str, word: str) -> bool:
        if self.tokens[self.at] != (kind, word):
            return False
        self.at += 1
        return True

    def expect(self, kind: str, word: str) -> None:
        if not self.take(kind, word):
            raise _UnsupportedError

    def next(self) -> _Token:
        token = self.tokens[self.at]
        if token[0] == "end":
            raise _UnsupportedError
        self.at += 1
        return token

    def condition(self) -> Kind:
        self.level += 1
        if self.level > _MOST_LEVELS:
            raise _UnsupportedError
        kind = self._conjunction()
        while self.take("keyword", "or"):
            kind = _both(_F, kind, self._conjunction())
        self.level -= 1
        return kind

    def _conjunction(self) -> Kind:
        kind = self._negation()
        while self.take("keyword", "and"):
            kind = _both(_F, kind, self._negation())
        return kind

    def _negation(self) -> Kind:
        return _both(_F, self._negation()) if self.take("keyword", "not") else self._predicate()

    def _predicate(self) -> Kind:
        left = self._joined()
        kind, word = self.tokens[self.at]
        if kind == "sign" and word in _COMPARISONS:
            self.at += 1
            return _comparable(left, self._joined())
        if self.take("keyword", "is"):
            self.take("keyword", "not")
            self.expect("keyword", "null")
            return _F
        negated = self.take("keyword", "not")
        if self.take("keyword", "in"):
            return self._in(left)
        if self.take("keyword", "like"):
            return self._like(left)
        if self.take("keyword", "between"):
            _comparable(left, self._joined())
            self.expect("keyword", "and")
            return _comparable(left, self._joined())
        if negated:
            raise _UnsupportedError
        return left

    def _in(self, left: Kind) -> Kind:
        self.expect("sign", "(")
        for each in self._arguments():
            _comparable(left, each)
        return _F

    def _like(self, left: Kind) -> Kind:
        if left is not _T or self.next()[0] != "text":
            raise _UnsupportedError
        return _F

    def _joined(self) -> Kind:
        kind = self._remainder()
        while self.take("sign", "||"):
            kind = _both(_T, kind, self._remainder())
        return kind

    def _remainder(self) -> Kind:
        kind = self._primary()
        while self.take("sign", "%"):
            divisor, word = self.next()
            if kind is not _W or divisor != "whole" or int(word) == 0:
                raise _UnsupportedError
        return kind

    def _primary(self) -> Kind:
        kind, word = self.next()
        if kind == "text":
            return _T
        if kind == "whole" or (kind, word) == ("sign", "-"):
            if kind == "sign" and self.next()[0] != "whole":
                raise _UnsupportedError
            return _W
        if (kind, word) == ("sign", "("):
            inner = self.condition()
            self.expect("sign", ")")
            return inner
        if kind == "keyword":
            return self._keyword(word)
        if kind == "name":
            return self._call(word) if self.take("sign", "(") else self._name(word)
        raise _UnsupportedError

    def _keyword(self, word: str) -> Kind:
        if word in {"true", "false"}:
            return _F
        if word != "case":
            raise _UnsupportedError
        kinds = []
        while self.take("keyword", "when"):
            _both(_F, self.condition())
            self.expect("keyword", "then")
            kinds.append(self.condition())
        if self.take("keyword", "else"):
            kinds.append(self.condition())
        self.expect("keyword", "end")
        return _one_of(kinds)

    def _name(self, word: str) -> Kind:
        if word not in self.names:
            raise _UnsupportedError
        return self.names[word]

    def _call(self, name: str) -> Kind:
        name = name.lower()
        if name in _WITH_NUMBERS:
            return self._with_numbers(_WITH_NUMBERS[name])
        kinds = self._arguments()
        if name == "concat" or name in _CHOOSING:
            return _both(_T, *kinds) if name == "concat" else _one_of(kinds)
        if name == "if":
            if len(kinds) != 3 or kinds[0] is not _F:  # noqa: PLR2004 - condition, then, else
                raise _UnsupportedError
            return _one_of(kinds[1:])
        if name in {"isnull", "isnotnull"} and len(kinds) == 1:
            return _F
        if name == "string" and kinds in ([_W], [_T]):
            return _T
        required, result = _FUNCTIONS.get(name, ((), None))
        if result is None or tuple(kinds) != required:
            raise _UnsupportedError
        return result

    def _arguments(self) -> list[Kind]:
        """Read one or more arguments up to the closing parenthesis."""
        kinds = [self.condition()]
        while self.take("sign", ","):
            kinds.append(self.condition())
        self.expect("sign", ")")
        return kinds

    def _with_numbers(self, counts: tuple[int, ...]) -> Kind:
        """Read a string and integer literals, whose range is known."""
        _both(_T, self.condition())
        numbers = 0
        while self.take("sign", ","):
            self.take("sign", "-")
            if self.next()[0] != "whole":
                raise _UnsupportedError
            numbers += 1
        self.expect("sign", ")")
        if numbers not in counts:
            raise _UnsupportedError
        return _T


def _both(required: Kind, *kinds: Kind) -> Kind:
    if any(kind is not required for kind in kinds):
        raise _UnsupportedError
    return required


def _one_of(kinds: list[Kind]) -> Kind:
    if len(set(kinds)) != 1:
        raise _UnsupportedError
    return kinds[0]


def _comparable(left: Kind, right: Kind) -> Kind:
    if left is not right or left not in {_T, _W}:
        raise _UnsupportedError
    return _F
