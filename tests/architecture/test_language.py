"""Words that the language rules of CONTRIBUTING.md replace occur nowhere: not in code, docs or messages."""

import re
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]

REPLACEMENTS = {
    "told": "reported, logged or printed; `status` or `report` as a name",
    "anew": "again; of topics: re-created",
    "put right": "reconfigured, repaired or fixed",
    "be had": "found or available",
    "is had": "is found or is available",
    "lacks": "is missing, has no",
    "nobody": "no client, no user",
    "somebody": "another client, a user",
    "beside": "next to, with, in addition to",
    "mended": "repaired or fixed",
    "heed": "follow, obey; of signals: handle",
    "heeds": "follows, obeys; of signals: handles",
    "borne": "tolerated",
    "looked at": "checked, read or inspected",
    "looks at": "checks, reads or inspects",
    "goes on": "continues or resumes",
    "stands in": "is in",
    "worked off": "processed",
    "likewise": "the same, also",
    "patiently": "with retries",
}
"""Word or phrase → what to write instead."""

_NOT_OURS = (
    "tests/oracle/cases/",  # recorded from Kafka Streams
    "tests/oracle/published/",  # applications as others published them
    "tests/oracle/regressions/",  # random documents that once failed
    "tests/compiler/recorded/",
    "tests/describe/recorded/",
    "requirements/",  # locked dependencies
    "tests/toolchain/go/",
    "infra/headwater/toolchain/go/",  # locked modules; a changed comment rebuilds the plugin for minutes
    "infra/headwater/toolchain/maven/",  # locked jars; a changed comment downloads them again
    "tests/architecture/test_language.py",
)

ALLOWED = {
    "CONTRIBUTING.md": (tuple(REPLACEMENTS), "lists these words as ones to replace"),
}
"""File → words that it may hold, and why."""


def _pattern(phrase: str) -> str:
    """Match a phrase as words, and in names as parts between underscores."""
    return r"[\s_-]+".join(map(re.escape, phrase.split()))


_BANNED = re.compile(
    rf"(?<![A-Za-z])({'|'.join(_pattern(each) for each in REPLACEMENTS)})(?![A-Za-z])", re.IGNORECASE
)
_WORDS = tuple(each for each in REPLACEMENTS if " " not in each)
_PHRASES = re.compile("|".join(_pattern(each) for each in REPLACEMENTS if " " in each))


def violations(file: str, text: str) -> list[str]:
    """Return one line for each banned word: where it is, and what replaces it."""
    allowed = ALLOWED.get(file, ((), ""))[0]
    found: list[str] = []
    # Few texts have one of these at all, also within words: this is five times as fast as the pattern.
    lower = text.lower()
    if not any(word in lower for word in _WORDS) and not _PHRASES.search(lower):
        return found
    for number, line in enumerate(text.splitlines(), 1):
        for match in _BANNED.finditer(line):
            phrase = " ".join(re.split(r"[\s_-]+", match[1].lower()))
            if phrase not in allowed:
                found.append(f'{file}:{number}: "{match[1]}": write instead: {REPLACEMENTS[phrase]}')
    return found


def _files() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=_ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and not name.startswith(_NOT_OURS)]


def test_files_use_no_banned_words() -> None:
    found = []
    for name in _files():
        found += violations(name, name)
        try:
            found += violations(name, (_ROOT / name).read_text(encoding="utf-8"))
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # not a text, or deleted but not committed yet
    assert not found, "\n".join([f"{len(found)} words to replace:", *found])


@pytest.mark.parametrize("file", ALLOWED)
def test_allowed_words_are_still_needed(file: str) -> None:
    words, reason = ALLOWED[file]
    assert reason
    text = (_ROOT / file).read_text(encoding="utf-8")
    assert {" ".join(re.split(r"[\s_-]+", match[1].lower())) for match in _BANNED.finditer(text)} <= set(
        words
    )
    assert _BANNED.search(text)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("The client key lacks.", "lacks"),
        ("def test_every_problem_is_told_once() -> None:", "told"),
        ("topics that were made anew", "anew"),
        ("an internal topic was put_right", "put right"),
        ("Somebody else holds it", "somebody"),
    ],
)
def test_a_banned_word_is_reported_with_its_replacement(line: str, word: str) -> None:
    (found,) = violations("docs/page.md", line)
    assert found.startswith("docs/page.md:1: ")
    assert REPLACEMENTS[word] in found


def test_similar_words_are_allowed() -> None:
    assert not violations(
        "docs/page.md", "besides, an untold number of needs to have had renewed work, heedless"
    )
