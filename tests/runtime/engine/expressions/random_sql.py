"""Random expressions that both back ends support, and random records for them."""

import random
from collections.abc import Callable

import attrs

_TEXTS = ("", " ", "a", "ab", "é", "ß", "x y", "%", "_", "null", "12", "😀", "İ", "Σ", "  padded ", "a,b,c",
          "${env:PATH}", "${spark.app.name}", "${system:user.name}", "%s{}", "-- x", "/* x */", ":p", "?",
          "\t", '"', "`", "$", "#")  # fmt: skip
_PATTERNS = ("%", "a%", "%b", "_", "%_%", "a_c", "", "é%", ".*", "[a]%", "(", "😀", "%😀%", "  %")
_PARTS = (
    b"", b" ", b"a", b"b", b"AB", b"c,", b"12", b"-7", b"%", b"_", b"\n", b"\t", b"\x00", "é".encode(),
    "ß".encode(), "İı".encode(), "ΑΣ".encode(), "ǆǅ".encode(), "ﬁ".encode(), "😀".encode(),
    "𐐷𐐏".encode(), "e\u0301".encode(), "\u00a0".encode(), "\u2028".encode(), "中文".encode(), "ŉ".encode(),
    b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\x80\x80",
    b"\xf4\x90\x80\x80", b"null",
)  # fmt: skip


def random_bytes(chance: random.Random) -> bytes | None:
    """Return null or random bytes, some of them malformed UTF-8."""
    if chance.randrange(8) == 0:
        return None
    return b"".join(chance.choice(_PARTS) for _ in range(chance.choice([0, 1, 1, 2, 3, 6])))


@attrs.define
class Expressions:
    """Each method returns the text of an expression of one kind, at most `depth` levels deep."""

    random: random.Random

    def text(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(["key", "value", "value", "topic", self._quoted(_TEXTS)])
        return self._one(self._simple, self._cut, self._chosen_text, self._changed)(depth - 1)

    def whole(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(
                ["partition", "offset", "timestamp", str(self.random.randint(-9, 9)), "0"]
            )
        return self._one(self._length, self._remainder, self._chosen_whole)(depth - 1)

    def flag(self, depth: int) -> str:
        if depth == 0:
            return self.random.choice(["true", "false", "value is null", "key is not null", "isnull(value)"])
        return self._one(self._comparison, self._test, self._logic, self._set)(depth - 1)

    def _one(self, *made: Callable[[int], str]) -> Callable[[int], str]:
        return self.random.choice(made)

    def _quoted(self, texts: tuple[str, ...]) -> str:
        return f"'{self.random.choice(texts)}'"

    def _number(self, low: int = -6, high: int = 9) -> str:
        return str(
            self.random.choice([self.random.randint(low, high), self.random.randint(low, high), 999_999_999])
        )

    def _simple(self, depth: int) -> str:
        name = self.random.choice(
            ["upper", "ucase", "lower", "lcase", "trim", "ltrim", "rtrim", "btrim", "reverse", "string"]
        )
        return f"{name}({self.text(depth)})"

    def _cut(self, depth: int) -> str:
        name = self.random.choice(["left", "right", "substr", "substring"])
        second = name.startswith("sub") and self.random.random() < 0.7
        numbers = [self._number() for _ in range(2 if second else 1)]
        return f"{name}({', '.join([self.text(depth), *numbers])})"

    def _chosen_text(self, depth: int) -> str:
        return self._choice(depth, self.text)

    def _chosen_whole(self, depth: int) -> str:
        return self._choice(depth, self.whole)

    def _choice(self, depth: int, of: Callable[[int], str]) -> str:
        choices: list[Callable[[], str]] = [
            lambda: f"coalesce({of(depth)}, {of(depth)})",
            lambda: f"nvl({of(depth)}, {of(0)})",
            lambda: f"if({self.flag(depth)}, {of(depth)}, {of(depth)})",
            lambda: f"case when {self.flag(depth)} then {of(depth)} else {of(depth)} end",
            lambda: f"case when {self.flag(depth)} then {of(depth)} when {self.flag(0)} then {of(0)} end",
            lambda: f"({of(depth)})",
        ]
        return self.random.choice(choices)()

    def _changed(self, depth: int) -> str:
        choices: list[Callable[[], str]] = [
            lambda: f"{self.text(depth)} || {self.text(depth)}",
            lambda: f"concat({self.text(depth)}, {self.text(depth)}, {self.text(0)})",
            lambda: f"replace({self.text(depth)}, {self.text(0)}, {self.text(0)})",
            lambda: f"translate({self.text(depth)}, {self.text(0)}, {self.text(0)})",
            lambda: f"nullif({self.text(depth)}, {self.text(depth)})",
            lambda: f"string({self.whole(depth)})",
        ]
        return self.random.choice(choices)()

    def _length(self, depth: int) -> str:
        name = self.random.choice(["length", "len", "char_length", "character_length"])
        made = f"{name}({self.text(depth)})"
        return self.random.choice([made, f"instr({self.text(depth)}, {self.text(depth)})"])

    def _remainder(self, depth: int) -> str:
        return f"{self.whole(depth)} % {self.random.choice([1, 2, 3, 7, 999_999_999])}"

    def _comparison(self, depth: int) -> str:
        sign = self.random.choice(["=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>"])
        of = self._one(self.text, self.whole)
        return f"{of(depth)} {sign} {of(depth)}"

    def _test(self, depth: int) -> str:
        name = self.random.choice(["contains", "startswith", "endswith"])
        of = self._one(self.text, self.whole, self.flag)
        return self.random.choice(
            [
                f"{name}({self.text(depth)}, {self.text(depth)})",
                f"({of(depth)}) {self.random.choice(['is null', 'is not null'])}",
                f"isnotnull({of(depth)})",
                f"{self.text(depth)} {self.random.choice(['like', 'not like'])} {self._quoted(_PATTERNS)}",
            ]
        )

    def _logic(self, depth: int) -> str:
        word = self.random.choice(["and", "or"])
        return self.random.choice(
            [
                f"{self.flag(depth)} {word} {self.flag(depth)}",
                f"not {self.flag(depth)}",
                f"({self.flag(depth)} {word} {self.flag(0)}) and not ({self.flag(depth)})",
            ]
        )

    def _set(self, depth: int) -> str:
        of = self._one(self.text, self.whole)
        word = self.random.choice(["", "not "])
        if self.random.random() < 0.5:
            return f"{of(depth)} {word}between {of(0)} and {of(depth)}"
        return f"{of(depth)} {word}in ({of(0)}, {of(depth)})"
