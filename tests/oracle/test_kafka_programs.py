"""Kafka's own examples and system tests: an exported document has exactly the topics of the real library."""

from pathlib import Path

import pytest

from headwater.model.versions import SUPPORTED
from tests.oracle.exported_documents import export_differences, loaded
from tests.oracle.kafka_programs import (
    EXAMPLES,
    SYSTEM_TESTS,
    WITH_EXAMPLES,
    Program,
    exported_program,
    runs_of,
)
from tests.oracle.kafka_streams import answer_of

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(600)]
_OLDEST, _NEWEST = str(SUPPORTED[0]), "4.3.1"
"""Maven Central has no jar with the tests of `kafka-streams` 4.4.0."""
_WITH_OLDEST = ("optimized", "smoke", "relational")
"""Each starts a JVM; these have all kinds of internal topics. `make fuzz` runs the others, too."""
_STATELESS = {"PipeDemo", "upgrade", "static member", "broker down", "standby"}


def _compare(name: str, program: Program, version: str, folder: Path) -> None:
    content = exported_program(program, version, folder)
    document = loaded(content["exported"])
    assert not isinstance(document, str), document
    runs = runs_of(content, document.application.id)
    assert runs
    found = list(export_differences(content["exported"], answer_of(content), runs))
    assert not found, found[0]
    has_topics = any(run.get("counts") for run in content["runs"])
    assert has_topics or name in _STATELESS


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(tmp_path: Path, name: str) -> None:
    _compare(name, EXAMPLES[name], WITH_EXAMPLES, tmp_path)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        *((name, _NEWEST) for name in SYSTEM_TESTS),
        *(
            pytest.param(name, _OLDEST, marks=() if name in _WITH_OLDEST else pytest.mark.soak)
            for name in SYSTEM_TESTS
        ),
    ],
)
def test_system_tests(tmp_path: Path, name: str, version: str) -> None:
    _compare(name, SYSTEM_TESTS[name], version, tmp_path)
