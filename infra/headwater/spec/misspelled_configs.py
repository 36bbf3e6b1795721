"""The config that a misspelled key means.

A key that no version of Kafka has is either misspelled, or belongs to a class of the user or of another
vendor: an interceptor, a serde, a metrics reporter, a login module. Such keys resemble Kafka's by chance,
because they share prefixes and words. So similarity of the whole key does not count, but what people
mistype: a letter or two, separators, the order of words, a word that is left out. More words, or other
words, make another key. In a short key, a word that exists is another word, not a mistake: `stats.dir`.
"""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache

import attrs

from headwater.compiler.configs.table import (
    HEADWATER_CONFIGS,
    PREFIXES,
    Owner,
    config_names,
    known_keys,
    split_key,
)
from headwater.spec.topic_configs import topic_configs

TOPIC_PREFIX = "topic."
REGISTRY_URL = "schema.registry.url"
"""`headwater run` and the serdes of schema registries read it; its values are not checked."""

_FRAMEWORK_PREFIX = re.compile(
    r"spring\.kafka\.(?:streams\.)?(?:properties\.|(?!(?:admin|consumer|producer)\.))"
    r"|spring\.cloud\.stream\.kafka\.streams\.binder\.(?:functions\.[^.]+\.)?(?:configuration\.)?"
    r"|spring\.cloud\.stream\.kafka\.streams\.(?:bindings\.[^.]+|default)\.consumer\."
    r"(?:configuration\.|(?=application-?[iI]d$))"
    r"|(?:%[^.]+\.)?(?:quarkus\.)?kafka-streams\."
)
"""The prefixes of keys that Spring for Apache Kafka, Spring Cloud Stream and Quarkus pass to Kafka Streams.

Spring passes none of `spring.kafka.consumer`, `producer` and `admin` to it. Quarkus' keys may begin with a
profile. Source: `KafkaProperties`, `KafkaStreamsBinderConfigurationProperties`,
`KafkaStreamsConsumerProperties`, and Quarkus' guide to Kafka Streams.
"""
_MAP_KEY = re.compile(r"\.?\[([^\[\]]+)\]$")
"""The key of a map in brackets, as Spring also accepts it: `properties[num.stream.threads]`."""
_LONGEST_KEY = 120
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+")
_LONG_WORD, _LIKENESS = 8, 0.8
"""A word of 8 letters may contain several mistakes: how similar it has to be."""
_MOST_WRONG_WORDS = 2
_LEFT_OUT = frozenset({"default", "ms", "bytes"})
"""Words that are left out even at the beginning or end of a key of two words."""
_CERTAIN_WORDS = 3
_ANY_CLASS = frozenset({"class", "type"})
"""Last words of so many keys that a word before them is not simply left out: `task.class`."""
_EXISTING_WORDS = frozenset(
    re.findall(
        r"\w+",
        "acls acts asks back catch die dim finger hack ie if io ip is latch lever longer match mb ns os pack "
        "patch pool prom pull roll side singer site stage stale stats tape us valve watch",
    )
)
"""Words of other keys that differ in one letter from a word of a short known key."""


@attrs.frozen
class _Spelling:
    """A key without its separators and capital letters, and its words without the prefix of a client."""

    prefix: str
    letters: str
    words: tuple[str, ...]


def find_meant_config(key: str) -> str | None:
    """Return the known config that a misspelled key probably means, None if it is probably another key."""
    if len(key) > _LONGEST_KEY:
        return None
    if _passed_name(key) is not None:
        return find_passed_config(key)
    if key in topic_configs() and key not in known_keys():
        return TOPIC_PREFIX + key
    given, best, meant = _spell(key), _UNLIKELY, None
    for known, spelling in _known_spellings():
        cost = _compare(given, spelling, best)
        if cost < best:
            best, meant = cost, known
    return None if best == _WORD_LEFT_OUT and _is_ambiguous(given) else meant


def find_passed_config(key: str) -> str | None:
    """Return the config of Kafka Streams that a framework sets from its own key, None for any other key."""
    name = _passed_name(key)
    if name is None or name in known_keys() or name.startswith(TOPIC_PREFIX):
        return name
    return find_meant_config(name)


def _passed_name(key: str) -> str | None:
    """Return the part of a framework's key that names a config of Kafka Streams, None for other keys."""
    dotted = _MAP_KEY.sub(r".\1", key)
    framework = _FRAMEWORK_PREFIX.match(dotted)
    return dotted[framework.end() :] if framework else None


_SAME_LETTERS, _ONE_EDIT, _OTHER_LETTERS, _OTHER_ORDER, _WORD_LEFT_OUT, _UNLIKELY = range(6)


def _compare(given: _Spelling, known: _Spelling, best: int) -> int:
    """Return which mistake leads from a known key to the given one: the lower, the more probable."""
    if given.letters == known.letters:
        return _SAME_LETTERS
    if _has_other_word(given.words, known.words):
        return _UNLIKELY
    if best > _ONE_EDIT and is_one_edit(given.letters, known.letters):
        return _ONE_EDIT
    if given.prefix != known.prefix or best <= _OTHER_LETTERS:
        return _UNLIKELY
    if len(given.words) == len(known.words):
        return _compare_words(given.words, known.words)
    return _WORD_LEFT_OUT if _omits_one_word(given.words, known.words) else _UNLIKELY


def _has_other_word(given: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Return whether a word of a short key was replaced by another word that exists."""
    return len(given) == len(known) < _CERTAIN_WORDS and any(
        word != meant and len(word) == len(meant) and word in _EXISTING_WORDS
        for word, meant in zip(given, known, strict=True)
    )


def _is_ambiguous(given: _Spelling) -> bool:
    """Return whether several words may have been left out: `compression.level`."""
    fitting = {
        known.words
        for _, known in _known_spellings()
        if known.prefix == given.prefix and _omits_one_word(given.words, known.words)
    }
    return len(given.words) < _CERTAIN_WORDS and len(fitting) > 1


def _compare_words(given: tuple[str, ...], known: tuple[str, ...]) -> int:
    wrong = [(word, meant) for word, meant in zip(given, known, strict=True) if word != meant]
    if len(wrong) <= min(_MOST_WRONG_WORDS, len(known) - 1) and all(
        is_one_edit(word, meant) or _is_similar(word, meant) for word, meant in wrong
    ):
        return _OTHER_LETTERS
    return _OTHER_ORDER if sorted(given) == sorted(known) else _UNLIKELY


def is_one_edit(word: str, meant: str) -> bool:
    """Return whether one letter was added, removed or replaced, or two neighbors changed places."""
    if abs(len(word) - len(meant)) > 1:
        return False
    start = next(
        (at for at, (one, other) in enumerate(zip(word, meant, strict=False)) if one != other),
        min(len(word), len(meant)),
    )
    rest, other = word[start:], meant[start:]
    return rest[1:] == other[1:] or rest[1:] == other or rest == other[1:] or _is_swapped(rest, other)


def _is_swapped(rest: str, other: str) -> bool:
    return rest[:2] == other[1::-1] and rest[2:] == other[2:]


def _is_similar(word: str, meant: str) -> bool:
    return (
        min(len(word), len(meant)) >= _LONG_WORD
        and SequenceMatcher(None, word, meant, autojunk=False).ratio() >= _LIKENESS
    )


def _omits_one_word(given: tuple[str, ...], known: tuple[str, ...]) -> bool:
    """Return whether one word was left out of a key; two words identify a key only by its first and last."""
    return (
        len(given) == len(known) - 1
        and len(given) > 1
        and any(
            given == known[:at] + known[at + 1 :]
            and (
                len(given) >= _CERTAIN_WORDS
                or word in _LEFT_OUT
                or (0 < at < len(given) and given[-1] not in _ANY_CLASS)
            )
            for at, word in enumerate(known)
        )
    )


def _spell(key: str) -> _Spelling:
    name, _owners = split_key(key)
    words = tuple(word.lower() for word in _WORDS.findall(name))
    prefix = key.removesuffix(name)
    return _Spelling(prefix, "".join(_WORDS.findall(prefix.lower())) + "".join(words), words)


@cache
def _known_spellings() -> tuple[tuple[str, _Spelling], ...]:
    return tuple((key, _spell(key)) for key in dict.fromkeys(_suggested_keys()))


def _suggested_keys() -> Iterator[str]:
    """Yield the keys that a misspelled one may mean, those without prefix first."""
    yield from (*HEADWATER_CONFIGS, REGISTRY_URL)
    yield from (name for owner in Owner for name in config_names(owner))
    yield from (prefix + name for prefix, owner in PREFIXES.items() for name in config_names(owner))
    yield from (TOPIC_PREFIX + name for name in topic_configs())
