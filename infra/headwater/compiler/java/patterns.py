"""Java regular expressions of pattern sources, matched against whole topic names.

A pattern is translated to a regular language over the characters of topic names, so matching always takes
linear time, even with nested repetitions. Constructs that are not regular or rarely used are not supported:
back references, atomic groups, possessive repetition, word boundaries, comment mode.
"""

from headwater.compiler.java.pattern_tree import (
    Begin,
    Chars,
    Choice,
    Concatenation,
    End,
    Look,
    PatternInvalidError,
    PatternUnsupportedError,
    Repeat,
    Tree,
    build_language,
    is_unbounded,
)
from headwater.compiler.java.regular_languages import (
    ALPHABET,
    CASED,
    CONTROLS,
    PROPERTIES,
    SHORTHANDS,
    Algebra,
    TooComplexError,
    both_cases,
)

_MOST_CHARACTERS = 65_536
_DEEPEST = 50
_MOST_REPEATS = 1_000
_SIGNS: dict[str, Tree] = {".": Chars(ALPHABET), "^": Begin(), "$": End()}
_LOOKS = {"?=": (True, False), "?!": (True, True), "?<=": (False, False), "?<!": (False, True)}
"""Start of a look-around group → whether it is a look-ahead, whether it is negative."""


def parse_pattern(text: str) -> Tree:
    """Return the syntax tree of a pattern.

    Raises:
        PatternInvalidError: the pattern is not valid in Java.
        PatternUnsupportedError: the pattern is not supported here.
    """
    if len(text) > _MOST_CHARACTERS:
        raise PatternUnsupportedError(f"it has more than {_MOST_CHARACTERS} characters")
    parser = _Parser(_without_quoting(text))
    tree = parser.choice()
    if not parser.at_end:
        raise PatternInvalidError("a ) without a (")
    return tree


def _without_quoting(text: str) -> str:
    r"""Replace `\Q…\E` by escaped characters before parsing, as Java does."""
    parts: list[str] = []
    read = at = 0
    while (at := text.find("\\", at)) >= 0:
        if text[at + 1 : at + 2] != "Q":
            at += 2
            continue
        quoted, closing, _ = text[at + 2 :].partition("\\E")
        parts.append(text[read:at])
        parts.append("".join(c if c.isalnum() or not c.isascii() else f"\\{c}" for c in quoted))
        read = at = at + 2 + len(quoted) + len(closing)
    return "".join([*parts, text[read:]])


class _Parser:
    """A recursive descent parser; flags apply up to the end of their group."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._ignores_case = False

    @property
    def at_end(self) -> bool:
        return self._at >= len(self._text)

    def choice(self) -> Tree:
        branches = [self._concatenation()]
        while self._take("|"):
            branches.append(self._concatenation())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _concatenation(self) -> Tree:
        parts: list[Tree] = []
        while not self.at_end and self._peek() not in "|)":
            atom = self._atom()
            if atom is not None:
                parts.append(self._quantified(atom))
            elif self._peek() in "*+?{":
                raise PatternUnsupportedError("it repeats a flag")
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def _atom(self) -> Tree | None:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return Chars(self._class(consume=True))
            case "\\":
                return self._escape()
            case "*" | "+" | "?" | "{":
                raise PatternInvalidError(f"{character} with nothing to repeat")
            case _:
                return _SIGNS.get(character) or self._literal(character)

    def _literal(self, character: str) -> Chars:
        only = frozenset(character)
        return Chars(both_cases(only) if self._ignores_case else only)

    def _quantified(self, atom: Tree) -> Tree:
        if self._take("?"):
            least, most = 0, 1
        elif self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif self._take("{"):
            least, most = self._bounds()
        else:
            return atom
        if self._take("+"):
            raise PatternUnsupportedError("it has a possessive repetition")
        self._take("?")
        if self._peek() == "{":
            raise PatternUnsupportedError("it repeats a repetition")
        if max(least, most or 0) > _MOST_REPEATS:
            raise PatternUnsupportedError(f"it repeats something more than {_MOST_REPEATS} times")
        return Repeat(atom, least, most)

    def _bounds(self) -> tuple[int, int | None]:
        least = self._number()
        most: int | None = least
        if self._take(","):
            most = None if self._peek() == "}" else self._number()
        if not self._take("}") or (most is not None and most < least):
            raise PatternInvalidError("{ without a repetition")
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._peek() in "0123456789" and not self.at_end:
            self._at += 1
        digits = self._text[start : self._at]
        if not 0 < len(digits) < 10:  # noqa: PLR2004 (a Java int)
            raise PatternInvalidError("{ without a repetition")
        return int(digits)

    def _group(self) -> Tree | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternUnsupportedError(f"its groups are nested more than {_DEEPEST} deep")
        outer = self._ignores_case
        look = next((_LOOKS[opening] for opening in _LOOKS if self._take(opening)), None)
        if look is None and self._take("?"):
            if self._take("<"):
                self._group_name()
            elif not self._take(":") and self._flags():
                self._depth -= 1
                return None
        inner = self.choice()
        if not self._take(")"):
            raise PatternInvalidError("a ( without a )")
        self._ignores_case = outer
        self._depth -= 1
        if look is None:
            return inner
        if not look[0] and is_unbounded(inner):
            raise PatternUnsupportedError("it has an unbounded look-behind")
        return Look(inner, *look)

    def _group_name(self) -> None:
        end = self._text.find(">", self._at)
        name = self._text[self._at : end]
        if end < 0 or not (name.isascii() and name.isalnum() and name[0].isalpha()):
            raise PatternInvalidError("an invalid group name")
        self._at = end + 1

    def _flags(self) -> bool:
        """Read the flags of `(?flags)` or `(?flags:`; return True for the first."""
        turned_on = True
        while True:
            flag = self._next()
            if flag in {":", ")"}:
                return flag == ")"
            if flag == "-" and turned_on:
                turned_on = False
            elif flag == "i":
                self._ignores_case = turned_on
            elif flag == "x" and turned_on:
                raise PatternUnsupportedError("it is in comment mode (?x)")
            elif flag == ">":
                raise PatternUnsupportedError("it has an atomic group")
            elif flag not in {"d", "m", "s", "u", "x", "U"}:
                raise PatternInvalidError(f"an unknown group (?{flag}")

    def _escape(self) -> Tree:
        character = self._next()
        if character in {"A", "G"}:
            return Begin()
        if character in {"z", "Z"}:
            return End()
        if character in {"b", "B"}:
            raise PatternUnsupportedError("it has a word boundary")
        if character in {"k", *"123456789"}:
            raise PatternUnsupportedError("it has a back reference")
        if character == "R":
            return Chars(frozenset())
        return Chars(self._escaped(character))

    def _escaped(self, character: str) -> frozenset[str]:
        r"""Return the characters of an escape, within a class or outside; `character` follows the \."""
        if character in SHORTHANDS:
            return SHORTHANDS[character]
        if character in {"p", "P"}:
            return self._property(is_negative=character == "P")
        single = frozenset(self._escaped_character(character))
        return both_cases(single) if self._ignores_case else single

    def _escaped_character(self, character: str) -> str:
        if character in CONTROLS:
            return CONTROLS[character]
        if character == "x":
            return self._hexadecimal(braced=True, digits=2)
        if character == "u":
            return self._hexadecimal(braced=False, digits=4)
        if character == "0":
            return self._octal()
        if character == "c":
            return chr(ord(self._next()) ^ 64)
        if character.isascii() and character.isalnum():
            raise PatternInvalidError(f"the escape \\{character}")
        return character

    def _hexadecimal(self, *, braced: bool, digits: int) -> str:
        if braced and self._take("{"):
            end = self._text.find("}", self._at)
            text, self._at = self._text[self._at : end], end + 1
        else:
            end = self._at + digits
            text, self._at = self._text[self._at : end], end
        try:
            is_whole = text.isalnum() and (braced or len(text) == digits)
            return chr(int(text, 16)) if end >= 0 and is_whole else self._bad()
        except (ValueError, OverflowError):
            return self._bad()

    def _octal(self) -> str:
        start = self._at
        while self._at - start < 3 and self._peek() in "01234567" and not self.at_end:  # noqa: PLR2004
            self._at += 1
        digits = self._text[start : self._at]
        if len(digits) == 3 and digits[0] > "3":  # noqa: PLR2004
            self._at -= 1
            digits = digits[:2]
        return chr(int(digits, 8)) if digits else self._bad()

    def _bad(self) -> str:
        raise PatternInvalidError("an incomplete escape")

    def _property(self, *, is_negative: bool) -> frozenset[str]:
        if self._take("{"):
            end = self._text.find("}", self._at)
            if end < 0:
                raise PatternInvalidError("a property without }")
            name, self._at = self._text[self._at : end], end + 1
        else:
            name = self._next()
        if name not in PROPERTIES or (self._ignores_case and name in CASED):
            raise PatternUnsupportedError(f"it has the property \\p{{{name}}}")
        return ALPHABET - PROPERTIES[name] if is_negative else PROPERTIES[name]

    def _class(self, *, consume: bool) -> frozenset[str]:
        """Read a class after its [; without `consume` an operand of && that ends before the outer ]."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PatternUnsupportedError(f"its classes are nested more than {_DEEPEST} deep")
        is_negative = consume and self._take("^")
        found: frozenset[str] = frozenset()
        is_empty = True
        while True:
            if self.at_end:
                raise PatternInvalidError("a [ without a ]")
            if self._peek() == "]" and not is_empty:
                self._at += consume
                break
            if self._take("&&"):
                found = self._operand() if is_empty else found & self._operand()
            elif self._take("["):
                found |= self._class(consume=True)
            else:
                found |= self._range()
            is_empty = False
        self._depth -= 1
        return ALPHABET - found if is_negative else found

    def _operand(self) -> frozenset[str]:
        if self._peek() in "]&\0":
            raise PatternUnsupportedError("it has && without an operand in a class")
        found: frozenset[str] = frozenset()
        while self._peek() not in "]&\0":
            found |= self._class(consume=True) if self._take("[") else self._class(consume=False)
        return found

    def _range(self) -> frozenset[str]:
        """Read one character of a class, a range, or an escape of a set."""
        first = self._next()
        if first == "\\":
            escaped = self._next()
            if escaped in {*SHORTHANDS, "p", "P"}:
                return self._escaped(escaped)
            first = self._escaped_character(escaped)
        last = first
        if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in {"]", "[", ""}:
            self._at += 1
            last = self._next()
            if last == "\\":
                last = self._escaped_character(self._next())
            if last < first:
                raise PatternInvalidError(f"the range {first}-{last}")
        found = frozenset(c for c in ALPHABET if first <= c <= last)
        return both_cases(found) if self._ignores_case else found

    def _peek(self) -> str:
        return self._text[self._at] if self._at < len(self._text) else "\0"

    def _next(self) -> str:
        if self.at_end:
            raise PatternInvalidError("an unexpected end")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, expected: str) -> bool:
        if self._text.startswith(expected, self._at):
            self._at += len(expected)
            return True
        return False


class UntranslatablePatternError(Exception):
    """The pattern is invalid in Java or not supported; the message says what in it."""

    def __init__(self, reason: str, *, is_invalid_java: bool = False) -> None:
        super().__init__(reason)
        self.is_invalid_java = is_invalid_java


class JavaPattern:
    """The regular expression of a pattern source (`java.util.regex.Pattern`).

    Raises `UntranslatablePatternError` when it is created, or at a match that needs too many states.
    """

    def __init__(self, text: str) -> None:
        try:
            self._algebra = Algebra()
            self._language = build_language(parse_pattern(text), self._algebra)
        except PatternUnsupportedError as reason:
            raise UntranslatablePatternError(
                str(reason), is_invalid_java=isinstance(reason, PatternInvalidError)
            ) from None
        except TooComplexError:
            raise UntranslatablePatternError("it is too complex") from None

    def matches(self, topic: str) -> bool:
        """Return whether the whole name `topic` matches.

        Raises `UntranslatablePatternError` if the match needs too many states.
        """
        try:
            return self._algebra.matches(self._language, topic)
        except TooComplexError:
            raise UntranslatablePatternError("it is too complex") from None

    def prefixes(self) -> tuple[tuple[str, bool], ...]:
        """Return prefixes of all matching names, sorted, each with whether it is a complete name.

        `orders-.*` has the prefix `orders-`, `(a|b)-in` has the names `a-in` and `b-in`. A pattern without a
        common prefix has the empty one.
        """
        try:
            return tuple(sorted(self._algebra.prefixes(self._language)))
        except TooComplexError:
            return (("", False),)
