"""The syntax tree of a Java regular expression, and its regular language."""

from collections.abc import Iterator, Sequence
from typing import cast

import attrs

from headwater.compiler.java.regular_languages import Algebra


class PatternUnsupportedError(Exception):
    """The pattern is not supported; the message says what in it."""


class PatternInvalidError(PatternUnsupportedError):
    """The pattern is not valid in Java."""


@attrs.frozen
class Chars:
    """One of the characters `allowed`."""

    allowed: frozenset[str]


@attrs.frozen
class Concatenation:
    """All `parts`, one after the other."""

    parts: "tuple[Tree, ...]"


@attrs.frozen
class Choice:
    """One of the `branches`."""

    branches: "tuple[Tree, ...]"


@attrs.frozen
class Repeat:
    """A part that matches `least` to `most` times; `most` None = without limit."""

    part: "Tree"
    least: int
    most: int | None


@attrs.frozen
class Look:
    """Look-ahead or look-behind."""

    part: "Tree"
    is_ahead: bool
    is_negative: bool


@attrs.frozen
class Begin:
    """The beginning of the text."""


@attrs.frozen
class End:
    """The end of the text."""


Tree = Chars | Concatenation | Choice | Repeat | Look | Begin | End
_ASSERTIONS = (Begin, End, Look)


def build_language(tree: Tree, algebra: Algebra) -> int:
    """Return the language of the texts that `tree` matches as a whole.

    Raises:
        PatternUnsupportedError: an assertion is in a position that is not supported.
        TooComplexError: the algebra needs too many expressions.
    """
    return _Language(algebra).top(tree)


def is_unbounded(tree: Tree) -> bool:
    """Return whether `tree` contains an unlimited repetition outside of look-arounds."""
    if isinstance(tree, Look):
        return False
    return (isinstance(tree, Repeat) and tree.most is None) or any(map(is_unbounded, _parts_of(tree)))


class _Language:
    """Builds the language from right to left: `then` is the language of what follows, for look-ahead."""

    def __init__(self, algebra: Algebra) -> None:
        self._algebra = algebra

    def top(self, tree: Tree) -> int:
        if isinstance(tree, Choice):
            return self._algebra.union([self.top(branch) for branch in tree.branches])
        if isinstance(tree, Concatenation):
            return self._whole_language(tree.parts, self._algebra.empty)
        return self._whole_language((tree,), self._algebra.empty)

    def _whole_language(self, parts: Sequence[Tree], then: int) -> int:
        """Return the language of a concatenation at the start of the text, where look-behind is supported."""
        behind = next((i for i in reversed(range(len(parts))) if _looks_behind(parts[i])), None)
        if behind is None:
            return self._sequence_language(parts, then, at_start=True)
        look, before = cast("Look", parts[behind]), parts[:behind]
        if any(_contains_kind(part, Look | End) and not _looks_behind(part) for part in before):
            raise PatternUnsupportedError("it has a look-behind after a look-ahead")
        if _contains_kind(look, Begin | End) or _holds_within(look, Look):
            raise PatternUnsupportedError("it has an anchor or look-around in a look-behind")
        algebra = self._algebra
        seen = algebra.concat([algebra.anything, self._language_of(look.part, algebra.empty, at_start=False)])
        if look.is_negative:
            seen = algebra.complement(seen)
        read = algebra.intersection([self._whole_language(before, algebra.empty), seen])
        return algebra.concat([read, self._sequence_language(parts[behind + 1 :], then, at_start=not before)])

    def _sequence_language(self, parts: Sequence[Tree], then: int, *, at_start: bool) -> int:
        starts = []
        for part in parts:
            starts.append(at_start)
            at_start = at_start and isinstance(part, _ASSERTIONS)
        for part, start in zip(reversed(parts), reversed(starts), strict=True):
            then = self._language_of(part, then, at_start=start)
        return then

    def _language_of(self, tree: Tree, then: int, *, at_start: bool) -> int:
        algebra = self._algebra
        match tree:
            case Chars():
                return algebra.concat([algebra.chars(tree.allowed), then])
            case Concatenation():
                return self._sequence_language(tree.parts, then, at_start=at_start)
            case Choice():
                return algebra.union(
                    [self._language_of(branch, then, at_start=at_start) for branch in tree.branches]
                )
            case Repeat():
                return self._repeat_language(tree, then, at_start=at_start)
            case Look():
                return self._look_language(tree, then, at_start=at_start)
            case Begin() if not at_start:
                raise PatternUnsupportedError("it has ^ after something else")
            case Begin():
                return then
            case End():
                return algebra.intersection([then, algebra.empty])

    def _repeat_language(self, tree: Repeat, then: int, *, at_start: bool) -> int:
        algebra = self._algebra
        if not _contains_kind(tree.part, Begin | End | Look):
            part = self._language_of(tree.part, algebra.empty, at_start=False)
            return algebra.concat([algebra.repeat(part, tree.least, tree.most), then])
        if tree.most != 1:
            raise PatternUnsupportedError("it repeats a look-around or an anchor")
        once = self._language_of(tree.part, then, at_start=at_start)
        return once if tree.least else algebra.union([then, once])

    def _look_language(self, tree: Look, then: int, *, at_start: bool) -> int:
        if not tree.is_ahead:
            raise PatternUnsupportedError("it has a look-behind within a group")
        seen = self._language_of(tree.part, self._algebra.anything, at_start=at_start)
        if tree.is_negative:
            seen = self._algebra.complement(seen)
        return self._algebra.intersection([seen, then])


def _holds_within(tree: Tree, kinds: type | object) -> bool:
    return any(_contains_kind(part, kinds) for part in _parts_of(tree))


def _looks_behind(tree: Tree) -> bool:
    return isinstance(tree, Look) and not tree.is_ahead


def _contains_kind(tree: Tree, kinds: type | object) -> bool:
    return isinstance(tree, kinds) or any(_contains_kind(part, kinds) for part in _parts_of(tree))  # type: ignore[arg-type]


def _parts_of(tree: Tree) -> Iterator[Tree]:
    match tree:
        case Concatenation():
            yield from tree.parts
        case Choice():
            yield from tree.branches
        case Repeat() | Look():
            yield tree.part
        case _:
            return
