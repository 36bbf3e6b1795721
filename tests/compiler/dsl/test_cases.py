"""Documents beside the topologies that they become; the real library is asked about the same documents."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from infra.describe import write_description
from infra.model.problems import errors
from infra.model.topology import TopologyDocument
from tests.compiler.dsl.documents import CASES, built, texts, typed, whole
from tests.compiler.dsl.rendering import rendered
from tests.oracle.comparison import compiled, insides, theirs
from tests.oracle.kafka_streams import KafkaStreams, Run

FAMILIES = sorted(file.stem for file in CASES.glob("*.yaml"))
REFUSED = {"refused", "unfit"}
KNOWN_TO_KAFKA_STREAMS = [
    pytest.param(text, id=f"{family}: {title}")
    for family in FAMILIES
    if family != "unfit"
    for title, text in texts(family)
]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_documents_become(family: str, golden: Callable[[Path, str], None]) -> None:
    golden(CASES / f"{family}.txt", "\n".join(_sections(family)))


@pytest.mark.parametrize("family", sorted(REFUSED))
def test_what_is_refused_is_an_error(family: str) -> None:
    for title, text in texts(family):
        assert errors(built(text).problems), title


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - REFUSED - {"optimization"}))
def test_what_is_not_refused_has_no_error(family: str) -> None:
    for title, text in texts(family):
        assert not errors(built(text).problems), title


@pytest.mark.parametrize("family", FAMILIES)
def test_every_problem_says_what_to_do(family: str) -> None:
    for title, text in texts(family):
        for problem in built(text).problems:
            assert problem.why.endswith("."), (title, problem)
            assert problem.fix.endswith("."), (title, problem)
            assert problem.summary.endswith("."), (title, problem)
            assert problem.application == "app"


@pytest.mark.oracle
@pytest.mark.parametrize("text", KNOWN_TO_KAFKA_STREAMS)
def test_the_real_library_builds_or_refuses_the_same(text: str, kafka_streams: KafkaStreams) -> None:
    document, nodes = typed(text), built(text)
    assert isinstance(document, TopologyDocument)
    data = whole(text)
    topics = dict.fromkeys(_topics(data["topology"]), 3) | {"src-1": 3}

    answer = kafka_streams.ask(data, (), topics)

    if answer.refusal is not None:
        assert any(f"throws {answer.refusal.name} " in problem.why for problem in errors(nodes.problems))
    else:
        assert not errors(nodes.problems)
        assert write_description(nodes) == answer.describe
        assert answer.insides is not None
        assert insides(compiled(document, Run("app", topics)), nodes) == theirs(answer.insides)


def _topics(calls: list[dict[str, dict[str, object] | None]]) -> Iterator[str]:
    """Topics that sources may read; it does no harm to name others."""
    for call in calls:
        for options in call.values():
            for key in ("topic", "topics"):
                found = (options or {}).get(key, [])
                yield from [found] if isinstance(found, str) else map(str, found)  # type: ignore[call-overload]


def _sections(family: str) -> Iterator[str]:
    for title, text in texts(family):
        yield f"== {title}\n{rendered(built(text))}"
