"""The subset of Spark SQL that gives the same value in Spark and in the runtime's tasks.

Outside of it their types differ (`docs/expressions.md`): Spark has decimals, 32-bit integers and Java's
regular expressions. No expression of the subset can fail, so no record is invalid in only one of the two.
Expressions are typed as string, bytes, integer or boolean; type errors are not in the subset.

Spark never gets the text of an expression: its parser would replace `${env:NAME}` by a variable of the
driver's environment. It gets columns that are built from the tree that `parse_expression` returns.
"""

import re
from collections.abc import Mapping, Sequence
from enum import Enum, auto
from functools import lru_cache

import attrs


class Kind(Enum):
    """The type of an expression's value; every kind includes null."""

    TEXT = auto()
    BYTES = auto()
    WHOLE = auto()
    FLAG = auto()


@attrs.frozen
class Literal:
    """A string, a whole number or a boolean."""

    value: str | int | bool
    kind: Kind


@attrs.frozen
class Name:
    """The record's `key` or `value`, or its metadata (`topic`, `partition`, `offset`, `timestamp`)."""

    name: str
    kind: Kind


@attrs.frozen
class Call:
    """A function of Spark SQL, or an operator.

    Operators are `and`, `or`, `not`, `%`, the comparisons (`=`, `<>`, `<=>`, …), `is null`, `in`, `like`,
    `between` and `case`. The operands of `case` are pairs of condition and result, then the result of `else`.
    """

    function: str
    operands: "tuple[Expression, ...]"
    kind: Kind


Expression = Literal | Name | Call
"""An expression of the subset, with the kind of its value."""

_T, _W, _F = Kind.TEXT, Kind.WHOLE, Kind.FLAG
_CASES = ("upper", "ucase", "lower", "lcase")
_FUNCTIONS: Mapping[str, tuple[tuple[Kind, ...], Kind]] = {
    **dict.fromkeys(_CASES, ((_T,), _T)),
    **dict.fromkeys(("trim", "ltrim", "rtrim", "btrim", "reverse"), ((_T,), _T)),
    **dict.fromkeys(("length", "len", "char_length", "character_length"), ((_T,), _W)),
    **dict.fromkeys(("contains", "startswith", "endswith"), ((_T, _T), _F)),
    "instr": ((_T, _T), _W),
    "replace": ((_T, _T, _T), _T),
    "translate": ((_T, _T, _T), _T),
    "nullif": ((_T, _T), _T),
    "string": ((_T,), _T),
}
"""Function → kinds of the arguments, kind of the result."""
_WITH_NUMBERS: Mapping[str, tuple[int, ...]] = {
    "left": (1,), "right": (1,), "substr": (1, 2), "substring": (1, 2),
}  # fmt: skip
"""Function of a string → allowed numbers of integer literals."""
_CHOOSING = {"coalesce", "ifnull", "nvl"}
_RECORD = {"topic": _T, "partition": _W, "offset": _W, "timestamp": _W}
_COMPARISONS: Mapping[str, str] = {
    "=": "=", "==": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>",
}  # fmt: skip
"""Sign → operator of `Call`."""
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
def parse_expression(text: str, key: Kind, value: Kind) -> Expression | None:
    """Return the tree of the expression `text`, given the kinds of `key` and `value`.

    None = the expression is not in the subset.
    """
    if len(text) > _MOST_CHARACTERS:
        return None
    try:
        reader = _Reader(_tokens(text), {**_RECORD, "key": key, "value": value})
        tree = reader.condition()
        reader.expect("end", "")
    except _UnsupportedError:
        return None
    return tree


def kind_of(text: str, key: Kind, value: Kind) -> Kind | None:
    """Return the kind of the expression `text`; None = the expression is not in the subset."""
    tree = parse_expression(text, key, value)
    return None if tree is None else tree.kind


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

    def condition(self) -> Expression:
        self.level += 1
        if self.level > _MOST_LEVELS:
            raise _UnsupportedError
        tree = self._conjunction()
        while self.take("keyword", "or"):
            tree = _call("or", _F, _F, tree, self._conjunction())
        self.level -= 1
        return tree

    def _conjunction(self) -> Expression:
        tree = self._negation()
        while self.take("keyword", "and"):
            tree = _call("and", _F, _F, tree, self._negation())
        return tree

    def _negation(self) -> Expression:
        negations = 0
        while self.take("keyword", "not"):
            negations += 1
        if negations > _MOST_LEVELS:
            raise _UnsupportedError
        tree = self._predicate()
        for _ in range(negations):
            tree = _call("not", _F, _F, tree)
        return tree

    def _predicate(self) -> Expression:
        left = self._concatenation()
        kind, word = self.tokens[self.at]
        if kind == "sign" and word in _COMPARISONS:
            self.at += 1
            return _compare(_COMPARISONS[word], left, self._concatenation())
        if self.take("keyword", "is"):
            negated = self.take("keyword", "not")
            self.expect("keyword", "null")
            return _negate(Call("is null", (left,), _F), negated=negated)
        negated = self.take("keyword", "not")
        if self.take("keyword", "in"):
            self.expect("sign", "(")
            return _negate(_compare("in", left, *self._arguments()), negated=negated)
        if self.take("keyword", "like"):
            kind, pattern = self.next()
            if kind != "text":
                raise _UnsupportedError
            return _negate(_call("like", _T, _F, left, _text(pattern)), negated=negated)
        if self.take("keyword", "between"):
            low = self._concatenation()
            self.expect("keyword", "and")
            return _negate(_compare("between", left, low, self._concatenation()), negated=negated)
        if negated:
            raise _UnsupportedError
        return left

    def _concatenation(self) -> Expression:
        tree = self._remainder()
        while self.take("sign", "||"):
            tree = _call("concat", _T, _T, tree, self._remainder())
        return tree

    def _remainder(self) -> Expression:
        tree = self._primary()
        while self.take("sign", "%"):
            divisor, word = self.next()
            if divisor != "whole" or int(word) == 0:
                raise _UnsupportedError
            tree = _call("%", _W, _W, tree, Literal(int(word), _W))
        return tree

    def _primary(self) -> Expression:
        kind, word = self.next()
        if kind == "text":
            return _text(word)
        if kind == "whole":
            return Literal(int(word), _W)
        if (kind, word) == ("sign", "-"):
            return Literal(-self._whole(), _W)
        if (kind, word) == ("sign", "("):
            inner = self.condition()
            self.expect("sign", ")")
            return inner
        if kind == "keyword":
            return self._keyword(word)
        if kind == "name":
            return self._function(word.lower()) if self.take("sign", "(") else self._name(word)
        raise _UnsupportedError

    def _whole(self) -> int:
        kind, word = self.next()
        if kind != "whole":
            raise _UnsupportedError
        return int(word)

    def _keyword(self, word: str) -> Expression:
        if word in {"true", "false"}:
            return Literal(word == "true", _F)
        if word != "case":
            raise _UnsupportedError
        operands: list[Expression] = []
        while self.take("keyword", "when"):
            operands.append(_require(_F, self.condition()))
            self.expect("keyword", "then")
            operands.append(self.condition())
        results = operands[1::2]
        if self.take("keyword", "else"):
            operands.append(self.condition())
            results.append(operands[-1])
        self.expect("keyword", "end")
        return Call("case", tuple(operands), _common_kind(results))

    def _name(self, word: str) -> Expression:
        if word not in self.names:
            raise _UnsupportedError
        return Name(word, self.names[word])

    def _function(self, name: str) -> Expression:
        if name in _WITH_NUMBERS:
            return self._with_numbers(name)
        operands = tuple(self._arguments())
        kinds = tuple(each.kind for each in operands)
        if name == "concat":
            return _call(name, _T, _T, *operands)
        if name in _CHOOSING:
            return Call("coalesce", operands, _common_kind(operands))
        if name == "if" and len(kinds) == 3:  # noqa: PLR2004 - condition, then, else
            return Call("case", (_require(_F, operands[0]), *operands[1:]), _common_kind(operands[1:]))
        if name in {"isnull", "isnotnull"} and len(kinds) == 1:
            return _negate(Call("is null", operands, _F), negated=name == "isnotnull")
        # Spark's optimizer makes lower(x) of lower(upper(x)), which differs for ß.
        if name in _CASES and any(_calls_any(each, _CASES) for each in operands):
            raise _UnsupportedError
        required, result = _FUNCTIONS.get(name, ((), None))
        converts_number = name == "string" and kinds == (_W,)
        if result is None or not (kinds == required or converts_number):
            raise _UnsupportedError
        return Call(name, operands, result)

    def _arguments(self) -> list[Expression]:
        """Read one or more arguments up to the closing parenthesis."""
        found = [self.condition()]
        while self.take("sign", ","):
            found.append(self.condition())
        self.expect("sign", ")")
        return found

    def _with_numbers(self, name: str) -> Expression:
        """Read a string and integer literals, whose range is known."""
        text = self.condition()
        numbers: list[Expression] = []
        while self.take("sign", ","):
            sign = -1 if self.take("sign", "-") else 1
            numbers.append(Literal(sign * self._whole(), _W))
        self.expect("sign", ")")
        if len(numbers) not in _WITH_NUMBERS[name]:
            raise _UnsupportedError
        return Call(name, (_require(_T, text), *numbers), _T)


def _text(token: str) -> Literal:
    return Literal(token[1:-1], _T)


def _require(kind: Kind, tree: Expression) -> Expression:
    if tree.kind is not kind:
        raise _UnsupportedError
    return tree


def _call(function: str, required: Kind, result: Kind, *operands: Expression) -> Call:
    return Call(function, tuple(_require(required, each) for each in operands), result)


def _calls_any(tree: Expression, functions: Sequence[str]) -> bool:
    if not isinstance(tree, Call):
        return False
    return tree.function in functions or any(_calls_any(each, functions) for each in tree.operands)


def _negate(tree: Call, *, negated: bool) -> Call:
    return Call("not", (tree,), _F) if negated else tree


def _compare(function: str, *operands: Expression) -> Call:
    """Return a comparison of operands of one kind, strings or whole numbers."""
    if _common_kind(operands) not in {_T, _W}:
        raise _UnsupportedError
    return Call(function, operands, _F)


def _common_kind(trees: Sequence[Expression]) -> Kind:
    kinds = {tree.kind for tree in trees}
    if len(kinds) != 1:
        raise _UnsupportedError
    return kinds.pop()
