"""What an upgrade means for an application of which only the text of `Topology#describe()` is known."""

import re

import attrs
import pytest

from headwater.compiler import compile_documents
from headwater.model.problems import ProblemCode, Severity, errors
from headwater.model.topology import TopologyDocument
from headwater.model.versions import KafkaStreamsVersion
from headwater.planner.upgrade import Upgrade, find_upgrade
from headwater.report.upgrade import upgrade_text
from headwater.spec import load_text

TOPICS = dict.fromkeys(("words", "more", "table"), 2)


def document(text: str, version: str) -> TopologyDocument:
    """Return the document of an application that is known by its text only."""
    lines = "".join(f"    {line}\n" for line in text.splitlines())
    names = [name for name in ("counts", "sums") if re.search(rf"stores: .*{name}", text)]
    stores = "".join(f"    {name}: {{kind: keyValue}}\n" for name in names)
    loaded = load_text(
        'application: {id: app, kafkaStreams: "3.9"}\ndescribe:\n'
        f"{'  stores:' if stores else ''}\n{stores}  text: |\n{lines}",
        "app.yaml",
    )
    assert not errors(loaded.problems), loaded.problems
    (given,) = loaded.documents
    numbers = map(int, f"{version}.0".split(".")[:3])
    application = attrs.evolve(given.application, kafka_streams=KafkaStreamsVersion(*numbers))
    return attrs.evolve(given, application=application)


def described(text: str, to: str) -> Upgrade:
    """Return the upgrade of the application from Kafka Streams 3.9."""
    before, after = (compile_documents([document(text, version)], TOPICS) for version in ("3.9", to))
    return find_upgrade(before, after, after[0].application.kafka_streams)


STATELESS = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [words])
      --> KSTREAM-FLATMAPVALUES-0000000001
    Processor: KSTREAM-FLATMAPVALUES-0000000001 (stores: [])
      --> KSTREAM-SINK-0000000002
      <-- KSTREAM-SOURCE-0000000000
    Sink: KSTREAM-SINK-0000000002 (topic: counts)
      <-- KSTREAM-FLATMAPVALUES-0000000001
"""
COUNTED = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [words])
      --> KSTREAM-AGGREGATE-0000000002
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [counts])
      --> none
      <-- KSTREAM-SOURCE-0000000000
"""
PROCESSOR = COUNTED.replace("KSTREAM-AGGREGATE", "KSTREAM-PROCESSOR")
TWO_STORES = COUNTED.replace("[counts]", "[counts, sums]")
GLOBAL_TABLE = f"""\
{STATELESS}   Sub-topology: 1 for global store (will not generate tasks)
    Source: KTABLE-SOURCE-0000000002 (topics: [table])
      --> KTABLE-SOURCE-0000000003
    Processor: KTABLE-SOURCE-0000000003 (stores: [table-STATE-STORE-0000000001])
      --> none
      <-- KTABLE-SOURCE-0000000002
"""


@pytest.mark.parametrize(
    ("text", "to", "concerned"),
    [
        (STATELESS, "4.3", ()),
        (COUNTED, "4.3", ()),
        (PROCESSOR, "4.3", ()),
        (PROCESSOR, "4.3.2", ("KAFKA-20464",)),
        (COUNTED, "4.3.2", ()),
        (TWO_STORES, "4.3", ("KIP-1112",)),
        (GLOBAL_TABLE, "4.3", ("KAFKA-18026",)),
    ],
    ids=["stateless", "counted", "processor", "added again", "DSL", "two stores", "global table"],
)
def test_a_described_text_rules_out_differences_of_operators_that_it_does_not_contain(
    text: str, to: str, concerned: tuple[str, ...]
) -> None:
    found = described(text, to)
    (application,) = found.applications
    assert application.is_rolling is application.is_known is (not concerned)
    if concerned:
        (problem,) = found.problems
        assert (problem.code, problem.severity) == (ProblemCode.MISSING_DETAIL, Severity.WARNING)
        assert re.findall(r"(?:KAFKA|KIP)-\d+", problem.why) == [*concerned]
        assert "nothing changes" not in upgrade_text(found)
        assert "not known" in upgrade_text(found)
    else:
        assert found.problems == ()
        assert "nothing changes in 1 application.\n" in upgrade_text(found)
