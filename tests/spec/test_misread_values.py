"""Typing mistakes that YAML reads as other values: with what the fix says to type, the document is valid."""

from pathlib import Path

import pytest

from headwater.model.problems import errors
from headwater.spec import load_documents, load_text

_HEAD = "application:\n  id: shop\n"
_STEPS = "topology:\n  - stream: {topic: orders}\n  - to: {topic: out}\n"
_DESCRIBED = (
    "Topologies:\n   Sub-topology: 0\n"
    "    Source: KSTREAM-SOURCE-0000000000 (topics: [orders])\n      --> none\n"
)
_INDENTED = "".join(f"    {line}\n" for line in _DESCRIBED.splitlines())


@pytest.mark.parametrize(
    ("typed", "fix", "corrected"),
    [
        ("application:\n  id:shop\n" + _STEPS, "Put a space after the colon: `id: shop`.", _HEAD + _STEPS),
        (
            "application:\n  id = shop\n" + _STEPS,
            "Put a colon and a space between key and value: `id: shop`.",
            _HEAD + _STEPS,
        ),
        (
            "application:\nid: shop\n" + _STEPS,
            "Indent the lines that belong to `application` deeper than `application` itself.",
            _HEAD + _STEPS,
        ),
        (
            "application:\n\xa0\xa0id: shop\n" + _STEPS,
            "Replace each no-break space (U+00A0) by a space: it is a part of the key for YAML.",
            _HEAD + _STEPS,
        ),
        (
            "application:\n  id: \N{LEFT DOUBLE QUOTATION MARK}shop\N{RIGHT DOUBLE QUOTATION MARK}\n"
            + _STEPS,
            "Replace the curly quotation marks by straight ones.",
            'application:\n  id: "shop"\n' + _STEPS,
        ),
        (
            "- application: {id: shop}\n  topology: [stream: orders, to: out]\n",
            "Write a mapping with `application`.",
            "application: {id: shop}\ntopology: [stream: orders, to: out]\n",
        ),
        ("application.id: shop\n" + _STEPS, "Write `id` below `application`.", _HEAD + _STEPS),
        (
            _HEAD + "  config:\n    - processing.guarantee: at_least_once\n" + _STEPS,
            "Remove the `-` before `processing.guarantee`.",
            _HEAD + "  config:\n      processing.guarantee: at_least_once\n" + _STEPS,
        ),
        (
            _HEAD + "  config:\n    - num.stream.threads: 2\n    - client.id: a\n" + _STEPS,
            "Remove the `-` before each key.",
            _HEAD + "  config:\n      num.stream.threads: 2\n      client.id: a\n" + _STEPS,
        ),
        (
            _HEAD + "topology:\n  stream: {topic: orders}\n  to: {topic: out}\n",
            "Begin each step with `- `: `- stream:`.",
            _HEAD + _STEPS,
        ),
        (
            _HEAD + "topology:\n  -stream: {topic: orders}\n  -to: {topic: out}\n",
            "Put a space after the `-` of each step: `- stream:`.",
            _HEAD + _STEPS,
        ),
        (
            _HEAD + "topology:\n  - stream: orders\n  - groupByKey\n  - count:\n",
            "Write `groupByKey:`, with a colon.",
            _HEAD + "topology:\n  - stream: orders\n  - groupByKey:\n  - count:\n",
        ),
        (
            _HEAD + "topology:\n  - stream: orders\n  - to: @out\n",
            "Put the value in quotes: it begins with `@`.",
            _HEAD + "topology:\n  - stream: orders\n  - to: out\n",
        ),
        (
            _HEAD + "describe: |\n" + _INDENTED,
            "Write `describe:`, on the next line `text: |`, and indent the text deeper than `text`.",
            _HEAD + "describe:\n  text: |\n" + _INDENTED,
        ),
    ],
)
def test_the_fix_says_what_to_type(typed: str, fix: str, corrected: str) -> None:
    assert fix in [problem.fix for problem in load_text(typed, "shop.yaml").problems]
    loaded = load_text(corrected, "shop.yaml")
    assert not errors(loaded.problems)
    assert [document.application.id for document in loaded.documents] == ["shop"]


@pytest.mark.parametrize("document", [_DESCRIBED, _HEAD + "describe:\n" + _DESCRIBED])
def test_a_described_topology_in_the_document_becomes_a_file(document: str, tmp_path: Path) -> None:
    (problem,) = load_text(document, "shop.yaml").problems
    assert problem.summary == "The text of `Topology#describe()` is not YAML."
    assert problem.fix.startswith(
        "Save the text as a file of its own, and name it: `describe: {file: orders.describe.txt}`."
    )
    (tmp_path / "orders.describe.txt").write_text(_DESCRIBED)
    (tmp_path / "shop.yaml").write_text(_HEAD + "describe: {file: orders.describe.txt}\n")
    assert not errors(load_documents([tmp_path]).problems)


@pytest.mark.parametrize("value", ["http://example.com", "shop", "a b:c", ""])
def test_other_texts_are_no_pair_of_a_key_and_a_value(value: str) -> None:
    (problem,) = load_text(f"application: {value!r}\n{_STEPS}", "shop.yaml").problems
    assert problem.fix.startswith("Write a mapping, such as `{id: orders-app")


@pytest.mark.parametrize(
    ("encoding", "fix"),
    [
        ("utf-16", "Save it as UTF-8, or name another file."),
        ("utf-16-le", "Save the file as UTF-8: null characters are in UTF-16 text and in binary files."),
        ("utf-16-be", "Save the file as UTF-8: null characters are in UTF-16 text and in binary files."),
        ("latin-1", "Save it as UTF-8, or name another file."),
    ],
)
def test_a_document_in_another_encoding(encoding: str, fix: str, tmp_path: Path) -> None:
    comment = "# \N{LATIN SMALL LETTER E WITH ACUTE}\n" if encoding == "latin-1" else ""
    file, text = tmp_path / "shop.yaml", f"{comment}{_HEAD}{_STEPS}"
    file.write_text(text, encoding=encoding)
    (problem,) = load_documents([file]).problems
    assert problem.fix == fix
    for right in ("utf-8", "utf-8-sig"):
        file.write_text(text.replace("\n", "\r\n"), encoding=right, newline="")
        assert not load_documents([file]).problems
