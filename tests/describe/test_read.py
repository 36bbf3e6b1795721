import json
import textwrap

import attrs
import pytest

from headwater.describe import read_description, read_descriptions, write_description
from headwater.describe.lines import repair_text
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from tests.describe.texts import SMALL, recorded_texts, shuffled


def read(text: str) -> NodeTopology:
    topology, problems = read_description(text, "app.txt")
    assert problems == ()
    return topology


PLAIN = read_description(SMALL)[0]


def as_log(text: str) -> str:
    prefix = "2026-03-01 12:00:00.123  INFO 1 --- [main] c.e.App : "
    return "".join(f"{prefix}{line}\n" for line in text.splitlines())


SURROUNDINGS = {
    "as it is": SMALL,
    "Windows line ends": SMALL.replace("\n", "\r\n"),
    "no line end at the end": SMALL.rstrip(),
    "log line before": f"12:00 INFO App - starting\n12:00 INFO App - {SMALL}12:01 INFO App - started\n",
    "log prefix on each line": as_log(SMALL),
    "compose prefix on each line": "".join(f"app-1  | {line}\n" for line in SMALL.splitlines()),
    "other lines between": SMALL.replace("    Sink:", "12:00 WARN Source: slow, --> 3 retries\n    Sink:"),
    "tabs": SMALL.replace("      ", "\t\t").replace("    ", "\t"),
    "no indentation": "\n".join(line.strip() for line in SMALL.splitlines()),
    "one JSON string": json.dumps({"level": "INFO", "message": SMALL}),
    "a JSON string a line": "\n".join(json.dumps({"log": f"{line}{chr(10)}"}) for line in SMALL.splitlines()),
    "a page's source": SMALL.replace("-->", "--&gt;").replace("<--", "&lt;--"),
    "quoted": "".join(f"> {line}\n" for line in SMALL.splitlines()),
    "control sequences of a terminal": SMALL.replace("\n", "\x1b[?25h\x1b[K\n"),
    "colors": SMALL.replace("Source:", "\x1b[32mSource:").replace("\n", "\x1b[0m\n"),
    "printed twice": f"{SMALL}\nrestarted\n{SMALL}",
    "no first line": SMALL.removeprefix("Topologies:\n"),
    "blank lines": SMALL.replace("\n", "\n\n"),
    "two blanks": SMALL.replace("Source: ", "Source:  ").replace("-->", "-->  ").replace(" (", "  ("),
    "kubectl with timestamps": "".join(
        f"2026-11-21T10:00:00.123456789Z {line}\n" for line in SMALL.splitlines()
    ),
    "a list of JSON strings": json.dumps([SMALL, SMALL]),
    "JSON in JSON": json.dumps({"log": json.dumps({"message": SMALL})}),
    "a JSON object a line, without line ends": "\n".join(
        json.dumps({"ts": 1, "message": line, "level": "INFO"}) for line in SMALL.splitlines()
    ),
    "JSON objects behind timestamps": "".join(
        f"2026-11-21T10:00:00Z {json.dumps({'log': line})}\n" for line in SMALL.splitlines()
    ),
    "an object with other keys": json.dumps({"describe": SMALL, "sources": ["orders"]}),
    "a literal of a program": " +\n".join(json.dumps(f"{line}\n") for line in SMALL.splitlines()),
    "a page with tags": "<html><body><pre><code>"
    + SMALL.rstrip().replace("-->", "--&gt;").replace("<--", "&lt;--")
    + "</code></pre></body></html>",
    "a page with a tag for each line": "".join(
        f'<span class="line">{line}</span><br/>' for line in SMALL.replace("-->", "--&gt;").splitlines()
    ).replace("<--", "&lt;--"),
    "entities twice": SMALL.replace("-->", "--&amp;gt;").replace("<--", "&amp;lt;--"),
    "the logger at the end of each line": "".join(
        f"[2026-11-21 10:00:00,123] INFO {line} (com.example.OrdersApp)\n" for line in SMALL.splitlines()
    ),
    "the logger at the end of the text": f"[2026-11-21 10:00:00,123] INFO {SMALL} (com.example.OrdersApp)\n",
    "columns of an export": "timestamp,message\n"
    + "".join(f'"2026-11-21T10:00:00Z","{line}"\n' for line in SMALL.splitlines()),
    "a fence of Markdown": f"```\n{SMALL}```\n",
    "no-break spaces": SMALL.replace(" ", "\u00a0"),
    "line ends that were converted twice": SMALL.replace("\n", "\r\r\n"),
    "line ends of a terminal": SMALL.replace("\n", "\r"),
    "a byte order mark": f"\ufeff{SMALL}",
    "dashes of a word processor": SMALL.replace("-->", "\u2013>").replace("<--", "<\u2014"),
    "arrows of a word processor": SMALL.replace("-->", "\u2192").replace("<--", "\u2190"),
    "colors without their escape character": SMALL.replace("Source:", "[32mSource:").replace("\n", "[0m\n"),
    "colors as JSON": SMALL.replace("Sink:", "\\u001b[1;32mSink:").replace("\n", "\\u001b[0m\n"),
    "wrapped at 80": "\n".join(
        line[at : at + 80] for line in SMALL.splitlines() for at in range(0, len(line) or 1, 80)
    ),
    "wrapped at blanks": "\n".join(
        part
        for line in SMALL.splitlines()
        for part in (textwrap.wrap(line, 72, break_long_words=False, break_on_hyphens=False) or [""])
    ),
}
_LONG_LISTS = """\
Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [customer-orders, customer-payments, customer-refunds])
      --> KSTREAM-AGGREGATE-0000000001, KSTREAM-AGGREGATE-0000000002, KSTREAM-AGGREGATE-0000000003
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [orders-by-customer-and-region, payments-by-customer])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000002 (stores: [])
      --> none
      <-- KSTREAM-SOURCE-0000000000
    Processor: KSTREAM-AGGREGATE-0000000003 (stores: [])
      --> none
      <-- KSTREAM-SOURCE-0000000000

"""


@pytest.mark.parametrize("width", [60, 64, 72, 80, 100])
def test_wrapped_lines_are_joined(width: int) -> None:
    lines = _LONG_LISTS.splitlines()
    cut = "\n".join(line[at : at + width] for line in lines for at in range(0, len(line) or 1, width))
    assert write_description(read(cut)) == _LONG_LISTS
    folded = "\n".join(
        part
        for line in lines
        for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False) or [""]
    )
    assert write_description(read(folded)) == _LONG_LISTS


@pytest.mark.parametrize("text", SURROUNDINGS.values(), ids=SURROUNDINGS.keys())
def test_text_around_a_description_is_ignored(text: str) -> None:
    topology = read(text)
    assert topology == PLAIN
    assert write_description(topology) == SMALL


def test_nodes_lists_and_groups_are_read_from_the_text() -> None:
    topology = read(SMALL)
    repartition = "KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition"
    assert topology.nodes[0] == SourceNode("KSTREAM-SOURCE-0000000000", ("orders",))
    assert topology.nodes[3] == SinkNode(
        "KSTREAM-SINK-0000000004", ("KSTREAM-FILTER-0000000005",), topic=repartition
    )
    assert topology.nodes[5] == ProcessorNode(
        "KSTREAM-AGGREGATE-0000000003",
        ("KSTREAM-SOURCE-0000000006",),
        ("KSTREAM-AGGREGATE-STATE-STORE-0000000002",),
    )
    assert topology.printed_groups["KSTREAM-SOURCE-0000000006"] == 1
    assert topology.listing["KSTREAM-SOURCE-0000000006"] == (("KSTREAM-AGGREGATE-0000000003",), ())


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_recorded_texts_are_written_back(text: str) -> None:
    assert write_description(read(text)) == text


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_recorded_texts_are_in_the_computed_order(text: str) -> None:
    computed = attrs.evolve(read(text), listing={}, printed_groups={})
    assert write_description(computed) == text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_lists_in_another_order_are_equal_and_written_back(text: str, seed: int) -> None:
    other = shuffled(text, seed)
    topology = read(other)
    assert write_description(topology) == other
    assert {node.name: set(getattr(node, "parents", ())) for node in topology.nodes} == {
        node.name: set(getattr(node, "parents", ())) for node in read(text).nodes
    }


PATTERNS = ["foo-.*", "a(b|c), d\\)", "[a-z]+-topic", "[ab]|[cd]", ".*", " x ", "(topics: [x])", "a) --> b"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_may_contain_any_text(pattern: str) -> None:
    text = write_description(NodeTopology((SourceNode("s", pattern=pattern),)))
    topology = read(text)
    assert topology.nodes == (SourceNode("s", pattern=pattern),)
    assert write_description(topology) == text


EXTRACTORS = ["App$$Lambda/0x1@2f", "a (topic: b)", "x) --> y", "two\nlines", "none"]


@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_extractors_may_print_any_text(extractor: str) -> None:
    nodes = (SourceNode("s", ("t",)), SinkNode("k", ("s",), extractor=extractor))
    text = write_description(NodeTopology(nodes))
    assert read(text).nodes == nodes
    assert write_description(read(text)) == text


def test_names_of_the_processor_api_may_contain_commas_and_blanks() -> None:
    nodes = (
        SourceNode("my source, first", ("t",)),
        ProcessorNode("a, b", ("my source, first",)),
        ProcessorNode("a", ("my source, first", "a, b")),
    )
    text = write_description(NodeTopology(nodes))
    topology = read(text)
    assert {node.name for node in topology.nodes} == {node.name for node in nodes}
    assert set(topology.listing["my source, first"][0]) == {"a, b", "a"}
    assert write_description(topology) == text


@pytest.mark.parametrize("text", recorded_texts().values(), ids=recorded_texts().keys())
def test_an_undamaged_text_is_not_changed(text: str) -> None:
    assert repair_text(text) == text


def test_an_empty_topology_has_no_nodes_and_no_problem() -> None:
    assert read("Topologies:\n ").nodes == ()


def test_global_stores() -> None:
    text = (
        "Topologies:\n   Sub-topology: 0 for global store (will not generate tasks)\n"
        "    Source: S (topics: [g])\n      --> P\n"
        "    Processor: P (stores: [st])\n      --> none\n      <-- S\n"
        "  Sub-topology: 1\n    Source: T (topics: [t])\n      --> none\n\n"
    )
    topology = read(text)
    assert topology.global_nodes == {"S", "P"}
    assert write_description(topology) == text


NAMED = (
    "Topology: first:\n   Sub-topology: 0\n    Source: S (topics: [a])\n      --> none\n\n"
    "Topology: second:\n   Sub-topology: 0\n    Source: S (topics: [b])\n      --> none\n\n"
)


def test_named_topologies_are_read_one_by_one() -> None:
    found = read_descriptions(NAMED)
    assert [(each.nodes.name, each.problems, each.line) for each in found] == [
        ("first", (), 1),
        ("second", (), 6),
    ]
    assert "".join(write_description(each.nodes) for each in found) == NAMED


def test_several_topologies_are_distinguished_by_name() -> None:
    _, problems = read_description(NAMED, "app.txt")
    assert [(problem.expected, problem.found) for problem in problems] == [
        ("one topology", "1 (line 1): first, reads a; 2 (line 6): second, reads b")
    ]
    for choice in ("second", "2"):
        topology, problems = read_description(NAMED, "app.txt", choice)
        assert (topology.name, problems) == ("second", ())
    _, problems = read_description(NAMED, "app.txt", "3")
    assert [problem.summary for problem in problems] == ["The text describes no topology 3."]


def test_repeats_in_another_order_are_equal() -> None:
    text = recorded_texts()["everything_opt_none"]
    assert shuffled(text, 1) != text
    _, problems = read_description(f"{text}\n{shuffled(text, 1)}\n{shuffled(text, 2)}")
    assert problems == ()


def test_a_cut_text_before_the_complete_one_is_listed_as_damaged() -> None:
    _, problems = read_description(f"{SMALL[:300]}\nrotated\n{SMALL}")
    (found,) = [each.found for each in problems if each.expected == "one topology"]
    assert found is not None
    assert "its text is damaged; 2 (line" in found
    topology, problems = read_description(f"{SMALL[:300]}\nrotated\n{SMALL}", topology="2")
    assert (topology, problems) == (PLAIN, ())


def test_a_text_of_before_1_1_is_one_problem() -> None:
    text = (
        "Sub-topologies:\n  Sub-topology: 0\n"
        "    Source: S(topics: plain) --> P\n    Processor: P(stores: [s]) --> K <-- S\n"
        "    Sink: K(topic: out) <-- P\nGlobal Stores:\n  none\n"
    )
    for damaged in (text, as_log(text), text.replace(">", "&gt;").replace("<", "&lt;")):
        _, problems = read_description(damaged)
        assert [problem.summary for problem in problems] == [
            "The text is of a version of Kafka Streams before 1.1."
        ]
