"""Hostile input: rejected quickly with a problem, and never with an exception."""

import json
import os
import resource
import time
from pathlib import Path

import pytest

from headwater.model.problems import Problem, ProblemCode
from headwater.spec import load_documents, load_text
from headwater.spec.locations import MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_PROBLEMS

START = "application: {id: shop}\ntopology:\n"
SECONDS = 10.0
"""Much more than any rejection takes, and much less than a successful attack."""


def rejected(text: str, file: str = "hostile.yaml") -> tuple[Problem, ...]:
    started = time.process_time()
    loaded = load_text(text, file)
    assert time.process_time() - started < SECONDS
    assert loaded.documents == ()
    assert loaded.problems
    return loaded.problems


def test_yaml_aliases_are_never_expanded() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    problems = rejected("\n".join(lines))

    summaries = [problem.summary for problem in problems if problem.code is ProblemCode.YAML_SYNTAX]
    assert summaries == [f"The anchor `&a{n}` is refused." for n in range(10)]


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_rejected(opening: str) -> None:
    (problem, *_) = rejected(START + "  - " + opening * 100_000)

    assert problem.code in (ProblemCode.DOCUMENT_TOO_LARGE, ProblemCode.YAML_SYNTAX)


def test_steps_may_be_nested_as_deep_as_the_limit_allows() -> None:
    depth = (MAX_DEPTH - 2) // 5
    inner = "{to: {topic: out}}"
    for _ in range(depth):
        inner = f"{{split: {{branches: [{{then: [{inner}]}}]}}}}"

    loaded = load_text(
        f"{{application: {{id: shop}}, topology: [{{stream: {{topic: a}}}}, {inner}]}}", "deep.yaml"
    )

    assert loaded.problems == ()


def test_too_many_values_are_rejected() -> None:
    (problem,) = rejected(START + "  - [" + "1," * (MAX_NODES + 1) + "]")

    assert problem.code is ProblemCode.DOCUMENT_TOO_LARGE
    assert problem.expected == "at most 200,000 values"


def test_the_number_of_reported_mistakes_is_limited() -> None:
    problems = rejected(START + "  - strem: {topic: x}\n" * 1_000)

    assert len(problems) == MAX_PROBLEMS + 1
    assert any(
        problem.summary == f"There are more than {MAX_PROBLEMS} problems; the others are not shown."
        for problem in problems
    )


@pytest.mark.parametrize(
    "part",
    [
        "  - stream: {topic: x, " + ", ".join(f"key{n}: 1" for n in range(50_000)) + "}",
        "  - stream: {topic: x, " + "k" * 1_000 + ": 1}",
        "  - filter: {from: " + "h" * 100_000 + "}",
        "  - stream: {topic: " + "t" * 1_000_000 + "}",
        "  - stream: {topic: x, offsetReset: 'by_duration:P" + "1" * 1_000_000 + "x'}",
        "  - windowedBy: {tumbling: {size: '" + "1d" * 500_000 + "'}}",
        "  - windowedBy: {tumbling: {size: " + "9" * 100_000 + "}}",
        "".join(f"  - filter: {{from: handle{n}, as: other{n}}}\n" for n in range(10_000)),
    ],
    ids=["keys", "long key", "handle", "topic", "reset", "duration", "number", "handles"],
)
def test_long_mistakes_are_reported_in_short_texts(part: str) -> None:
    for problem in rejected(START + part):
        texts = (problem.summary, problem.expected or "", problem.found or "", problem.why, problem.fix)
        assert all(len(text) < 1_000 for text in texts)


def test_the_number_of_reported_unknown_configs_is_limited() -> None:
    keys = "".join(f"    num.stream.thread{n}: 1\n" for n in range(50_000))
    started = time.process_time()
    loaded = load_text(
        f"application:\n  id: shop\n  config:\n{keys}topology:\n  - stream: {{topic: a}}\n", "f.yaml"
    )

    assert time.process_time() - started < SECONDS
    assert len(loaded.problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/name:os.system",
        "!!binary",
        "!!set",
        "!!str",
        "!local",
        "!",
        "!<x>",
    ],
)
def test_yaml_tags_are_rejected(tag: str) -> None:
    (problem, *_) = rejected(f"application: {{id: shop}}\ntopology:\n  - stream: {tag} [touch, /tmp/harm]\n")

    assert "tag" in problem.summary


@pytest.mark.parametrize(
    "content",
    [
        b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)),
        b"\xff\xfea\x00:\x00",
        b"\x80\x81",
        b"\x00" * 100,
        b"\x1f\x8b\x08",
    ],
    ids=["program", "utf-16", "latin", "zeros", "gzip"],
)
def test_binary_files_are_rejected(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "binary.yaml"
    file.write_bytes(content)

    loaded = load_documents([file])

    assert loaded.documents == ()
    assert loaded.problems[0].code in (ProblemCode.UNREADABLE_DOCUMENT, ProblemCode.YAML_SYNTAX)


def test_an_invalid_byte_is_reported_with_its_location(tmp_path: Path) -> None:
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"application:\n  id: caf\xe9\n")

    (problem,) = load_documents([file]).problems

    assert str(problem.location) == f"{file}:2:10"
    assert problem.found == "byte 0xe9"


def test_a_file_of_50_mib_is_rejected_without_reading_it(tmp_path: Path) -> None:
    file = tmp_path / "large.yaml"
    with file.open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    (problem,) = load_documents([file]).problems

    assert problem.code is ProblemCode.DOCUMENT_TOO_LARGE
    assert (problem.expected, problem.found) == ("at most 5,242,880 bytes", "52,428,800 bytes")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10 * 1024  # KiB


def test_a_file_of_the_maximum_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "padded.yaml"
    text = START + "  - stream: {topic: a}\n#"
    file.write_text(text + "x" * (MAX_BYTES - len(text)))

    assert load_documents([file]).problems == ()


def test_a_named_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)

    (problem,) = load_documents([pipe]).problems

    assert problem.summary == "`pipe.yaml` cannot be used. It is not a regular file."


@pytest.mark.parametrize(
    "name", ["../secret.txt", "/etc/hostname", "sub/../../secret.txt", "link.txt", "folder/secret.txt", "."]
)
def test_a_description_outside_of_the_documents_folder_is_rejected(name: str, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("Topologies:\n   Sub-topology: 0\n")
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "link.txt").symlink_to(tmp_path / "secret.txt")
    (documents / "folder").symlink_to(tmp_path)
    document = documents / "shop.yaml"
    document.write_text(f"application: {{id: shop}}\ndescribe: {{file: '{name}'}}\n")

    loaded = load_documents([document])

    assert loaded.documents == ()
    (problem,) = loaded.problems
    assert problem.code is ProblemCode.UNREADABLE_DESCRIBE
    assert problem.summary == "`file` is outside of the document's folder."


def test_a_description_in_a_named_pipe_is_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (problem,) = load_text(
        "application: {id: shop}\ndescribe: pipe.txt\n", str(tmp_path / "shop.yaml")
    ).problems

    assert problem.code is ProblemCode.UNREADABLE_DESCRIBE
    assert problem.location is not None
    assert problem.location.pointer == "/describe"


def test_an_invalid_file_name_of_a_description_is_rejected(tmp_path: Path) -> None:
    (problem,) = load_text(
        'application: {id: shop}\ndescribe: "a\\0b"\n', str(tmp_path / "shop.yaml")
    ).problems

    assert problem.code is ProblemCode.UNREADABLE_DESCRIBE


@pytest.mark.parametrize("name", [".", "..", "a/b", "../a", "", "a" * 250])
def test_an_application_id_is_no_path(name: str) -> None:
    """It names folders of state and checkpoints."""
    text = f"application: {{id: {json.dumps(name)}}}\ntopology: [{{stream: in}}, {{to: out}}]\n"
    assert [problem.code for problem in load_text(text, "app.yaml").problems] == [
        ProblemCode.SCHEMA_VIOLATION
    ]
