"""Random topologies: Headwater and each version of Kafka Streams build the same, or both refuse them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from headwater.compiler import build_nodes
from headwater.model.versions import DEFAULT_VERSION, SUPPORTED
from headwater.spec import load_documents
from tests.oracle.kafka_streams import KafkaStreams
from tests.oracle.random_topologies.stores import Choices
from tests.oracle.situations import Situation, random_situation, stored_situations
from tests.yaml_text import load_yaml

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(0)]
_HERE = Path(__file__).parent
_QUICK = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "100"))
_LONG = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "5000"))
_QUICK_OF_OTHERS = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "20"))
_LONG_OF_OTHERS = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "2000"))
_OTHERS = [str(version) for version in SUPPORTED if version != DEFAULT_VERSION]
_STORED_IN = [_OTHERS[0], *(pytest.param(version, marks=pytest.mark.soak) for version in _OTHERS[1:])]
"""The oldest version differs most from the default one. The others get random topologies in `make test`."""
_REGRESSIONS = dict(stored_situations(_HERE / "regressions"))
_PUBLISHED = dict(stored_situations(_HERE / "published"))
_EXAMPLES = [
    file
    for file in sorted((_HERE.parents[1] / "topology_schemas" / "examples").rglob("*.yaml"))
    if "\ntopology:" in file.read_text(encoding="utf-8")
]
_common = settings(
    phases=(Phase.generate, Phase.shrink),
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)


@st.composite
def situations(draw: st.DrawFn, *, rare: bool = False) -> Situation:
    return random_situation(Choices(lambda options: draw(st.integers(0, options - 1))), rare=rare)


@pytest.fixture(scope="module", params=_OTHERS)
def other_version(
    request: pytest.FixtureRequest, kafka_streams_of: Callable[[str], KafkaStreams]
) -> KafkaStreams:
    return kafka_streams_of(request.param)


@settings(_common, max_examples=_QUICK)
@given(situation=situations())
def test_same_as_kafka_streams(kafka_streams: KafkaStreams, situation: Situation) -> None:
    _assert_same(kafka_streams, situation)


@settings(_common, max_examples=_QUICK_OF_OTHERS)
@given(situation=situations())
def test_same_as_other_versions(other_version: KafkaStreams, situation: Situation) -> None:
    _assert_same(other_version, situation)


@pytest.mark.parametrize("other_version", _STORED_IN, indirect=True)
@pytest.mark.parametrize("situations", [_REGRESSIONS, _PUBLISHED], ids=["regressions", "published"])
def test_stored_situations_in_other_versions(
    other_version: KafkaStreams, situations: dict[str, Situation]
) -> None:
    for situation in situations.values():
        _assert_same(other_version, situation)


@pytest.mark.soak
@settings(_common, max_examples=_LONG, derandomize=False)
@given(situation=situations(rare=True))
def test_same_as_kafka_streams_for_long(kafka_streams: KafkaStreams, situation: Situation) -> None:
    _assert_same(kafka_streams, situation)


@pytest.mark.soak
@settings(_common, max_examples=_LONG_OF_OTHERS, derandomize=False)
@given(situation=situations(rare=True))
def test_same_as_other_versions_for_long(other_version: KafkaStreams, situation: Situation) -> None:
    _assert_same(other_version, situation)


@pytest.mark.parametrize("name", _REGRESSIONS)
def test_regressions(kafka_streams: KafkaStreams, name: str) -> None:
    _assert_same(kafka_streams, _REGRESSIONS[name])


@pytest.mark.parametrize("name", _PUBLISHED)
def test_published_applications(kafka_streams: KafkaStreams, name: str) -> None:
    situation = _PUBLISHED[name]
    answer = kafka_streams.ask(situation.document)
    assert answer.refusal is None, answer.refusal
    _assert_same(kafka_streams, situation)


@pytest.mark.parametrize("file", _EXAMPLES, ids=lambda file: file.stem)
def test_examples_of_the_documentation(kafka_streams: KafkaStreams, file: Path) -> None:
    document = load_yaml(file.read_text(encoding="utf-8"))
    typed = load_documents([file]).documents[0]
    sources = {topic for node in build_nodes(typed).nodes for topic in getattr(node, "topics", ())}
    _assert_same(kafka_streams, Situation(document, (dict.fromkeys(sources, 3),)))


def _assert_same(kafka_streams: KafkaStreams, situation: Situation) -> None:
    found = situation.differences(kafka_streams)
    assert not found, f"{found[0]}\n\nTo keep it, write to regressions/:\n{situation.text()}"
