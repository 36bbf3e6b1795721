"""The texts of what the compiler finds: a document each, named after the problem, its text beside it."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from infra import compiler
from infra.compiler import compile_documents
from infra.model.problems import Problem, ProblemCode
from infra.report import problems_text
from infra.spec import load_documents

_FOLDER = Path(__file__).parent / "problems"
_DOCUMENTS = sorted(_FOLDER.glob("*.yaml"))
_COMPILER = Path(inspect.getfile(compiler)).parent
_HELD_ELSEWHERE = {
    ProblemCode.OPTIMIZATION_FAILS,  # takes a topology too large to be read; with the differential tests
    ProblemCode.RENUMBERED,  # takes a recorded set-up; with the plans
}


@pytest.mark.parametrize("file", _DOCUMENTS, ids=lambda file: file.stem)
def test_text(file: Path, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    problems = _problems(file, monkeypatch)
    assert ProblemCode(file.stem) in {problem.code for problem in problems}
    golden(file.with_suffix(".txt"), problems_text(problems) + "\n")


def test_every_code_that_the_compiler_emits_has_a_text() -> None:
    emitted = {
        ProblemCode[name]
        for file in _COMPILER.rglob("*.py")
        for name in re.findall(r"ProblemCode\.([A-Z_]+)", file.read_text(encoding="utf-8"))
    }
    assert emitted - _HELD_ELSEWHERE <= {ProblemCode(file.stem) for file in _DOCUMENTS}


def _problems(file: Path, monkeypatch: pytest.MonkeyPatch) -> list[Problem]:
    """The first line of a document gives the counts of its source topics."""
    monkeypatch.chdir(_FOLDER)
    first = file.read_text(encoding="utf-8").splitlines()[0]
    counts = {topic: int(count) for topic, count in re.findall(r"(\S+)=(\d+)", first)}
    loaded = load_documents([Path(file.name)])
    compiled = compile_documents(loaded.documents, counts)
    return [*loaded.problems, *(problem for application in compiled for problem in application.problems)]
