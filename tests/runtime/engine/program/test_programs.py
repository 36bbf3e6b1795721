"""Programs of the examples, as golden files; `UPDATE_GOLDEN=1` rewrites them."""

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.compiler import build_nodes, compile_document
from headwater.model.formats import Format, RecordFormat
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater.model.problems import Problem, ProblemCode
from headwater.model.topology import TopologyDocument
from headwater.report import problems_text
from headwater.spec import load_documents, load_text
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.program import SubtopologyProgram, build_programs, problems_of, schema_files
from headwater_spark.engine.records import CurrentRecord, Value
from headwater_spark.engine.task import Task
from headwater_spark.partitioners import linear_partition
from headwater_spark.worker.local_state import MemoryState


def rendered(program: SubtopologyProgram) -> Iterator[str]:
    kind = "global" if program.is_global else f"{program.tasks} tasks"
    yield f"program {program.name} ({kind})"
    for node in program.nodes:
        yield from _node(program, node)
    for store in program.stores:
        yield _store(program, store)


def _node(program: SubtopologyProgram, node: Node) -> Iterator[str]:
    if isinstance(node, SourceNode):
        topics = [topic for topic, reader in program.sources.items() if reader == node.name]
        patterns = [f"/{pattern}/" for pattern, reader in program.patterns if reader == node.name]
        yield f"  source {node.name} <- {', '.join((*topics, *patterns))}"
        yield f"    {_options(node.reads)}"
    elif isinstance(node, SinkNode):
        rule = program.partitioning[node.name]
        by = rule.rule.value + (f" {rule.partitioner}" if rule.partitioner else "")
        yield f"  sink {node.name} <- {', '.join(node.parents)} -> {program.topic(node.name)} by {by}"
        yield f"    {_options(node.writes)}"
    else:
        yield f"  {node.name} <- {', '.join(node.parents)}{_stores(node)}"
        yield f"    {_options(node.behavior)}"


def _stores(node: ProcessorNode) -> str:
    return f" [{', '.join(node.stores)}]" if node.stores else ""


def _store(program: SubtopologyProgram, store: StateStore) -> str:
    log = program.changelog(store.name) or program.source_changelogs.get(store.name)
    return f"  store {store.name} -> {log}: {_options(store.keeps)}"


def _options(value: object) -> str:
    """Return the class and the fields that differ from their defaults."""
    kind: Any = type(value)
    if not attrs.has(kind):
        return repr(value)
    if isinstance(value, RecordFormat):
        return f"({_format(value.key)}, {_format(value.value)})"
    if isinstance(value, Format):
        return _format(value)
    fields = [
        f"{field.name}={_options(each) if attrs.has(type(each)) else repr(each)}"
        for field in attrs.fields(kind)
        if (each := getattr(value, field.name)) != field.default
    ]
    return f"{type(value).__name__}({', '.join(fields)})"


def _format(wanted: Format | None) -> str:
    if wanted is None:
        return "default"
    window = f"{wanted.window}:{wanted.size_ms} of " if wanted.window else ""
    return window + wanted.name


EXAMPLES = Path(__file__).parents[4] / "topology_schemas" / "examples"
GOLDEN = Path(__file__).parent / "golden"
FILES = sorted(EXAMPLES.rglob("*.yaml"))


def programs_of(document: TopologyDocument) -> tuple[SubtopologyProgram, ...]:
    nodes = build_nodes(document)
    topics = {t for node in nodes.nodes if isinstance(node, SourceNode) for t in node.topics}
    compiled = compile_document(document, dict.fromkeys(topics, 4) | {"orders-x": 4, "audit-x": 4})
    return build_programs(document, nodes, compiled)


def only(text: str) -> TopologyDocument:
    documents = load_text(text, "doc.yaml")
    assert not documents.problems
    return documents.documents[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_programs_of_the_examples(file: Path) -> None:
    (document,) = load_documents([file]).documents
    problems = [nameless(problem, file) for problem in problems_of(document, build_nodes(document))]
    text = "\n".join(line for program in programs_of(document) for line in rendered(program))
    shown = problems_text(problems) if problems else ""
    check(GOLDEN / f"{file.stem}.txt", f"{text}\n\n{shown}".rstrip() + "\n")


def nameless(problem: Problem, file: Path) -> Problem:
    """Remove the folder of the file: its length would change the line breaks."""
    at = problem.location
    return problem if at is None else attrs.evolve(problem, location=attrs.evolve(at, file=file.name))


def check(golden: Path, text: str) -> None:
    if "UPDATE_GOLDEN" in os.environ:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


WINDOWED = """
application: {id: app, config: {default.value.serde: org.apache.kafka.common.serialization.Serdes$LongSerde}}
topology:
  - stream: {topic: in, serdes: {key: string}}
  - groupByKey:
  - windowedBy: {tumbling: {size: 1m}}
  - count:
  - toStream:
  - to: {topic: out, name: out}
"""


def test_a_program_can_be_pickled() -> None:
    (program,) = programs_of(only(WINDOWED))
    there: SubtopologyProgram = pickle.loads(pickle.dumps(program))  # noqa: S301 - our own
    assert there == program
    assert there.expression("value + 1", ("key", "value"), CurrentRecord())("k", 2) == 3


def test_a_windowed_key_has_the_partition_of_its_inner_key() -> None:
    program = programs_of(only(WINDOWED))[0].with_counts({"out": 5})
    partition = program.partition("out")
    assert partition is not None
    assert partition("out", None, b"alpha" + bytes(8), None) == 3
    assert partition("out", None, b"beta" + b"\x01" * 8, None) == 4


def test_default_formats_are_those_of_the_application() -> None:
    (program,) = programs_of(only(WINDOWED))
    assert program.serde(None, "value").serialize(1) == bytes(7) + b"\x01"
    assert program.serde(None, "key").serialize("k") == b"k"


def test_schema_files_are_listed() -> None:
    document = only(
        "application: {id: app}\n"
        "topology:\n"
        "  - stream: {topic: in, serdes: {value: 'avro:schemas/order.avsc'}}\n"
        "  - to: {topic: out}\n"
    )
    nodes = build_nodes(document)
    assert schema_files(nodes, {}) == {"schemas/order.avsc": "avro"}
    (missing, _) = problems_of(document, nodes)
    assert missing.code == "UnsupportedFormat"
    assert problems_of(document, nodes, {"schemas/order.avsc": '"string"'}) == ()
    (wrong, _) = problems_of(document, nodes, {"schemas/order.avsc": "{}"})
    assert "invalid Avro schema" in wrong.summary


def test_patterns_lead_to_their_source() -> None:
    topology = "topology:\n  - stream: {pattern: 'a-.*', name: s}\n  - to: {topic: o}"
    document = only(f"application: {{id: app}}\n{topology}")
    (program,) = programs_of(document)
    assert program.source("a-1") == "s"
    assert program.reads("a-1")
    assert not program.reads("b-1")
    with pytest.raises(KeyError):
        program.source("b-1")


def test_static_partitioners_apply_to_sinks_without_their_own() -> None:
    document = only(
        "application:\n  id: app\n"
        "  config: {static.partitioner.class: range, static.partitioner.bounds: 'm'}\n"
        "topology:\n  - stream: {topic: in}\n"
        "  - to: {topic: a, name: a}\n  - to: {from: s, topic: b, name: b, partitioner: default}\n".replace(
            "{topic: in}", "{topic: in, as: s}"
        )
    )
    program = programs_of(document)[0].with_counts({"a": 2})
    assert problems_of(document, build_nodes(document)) == ()
    partition = program.partition("a")
    assert partition is not None
    assert [partition("a", key, key.encode(), None) for key in ("alpha", "zeta")] == [0, 1]
    assert program.partition("b") is None


LINEAR_HASH = """
application:
  id: app
  PROCESSORS
  config: {static.partitioner.class: linear-hash, static.partitioner.initial.partitions: 2}
topology:
  - stream: {topic: in, serdes: {key: long, value: string}}
  - to: {topic: out, name: out}
"""


def test_linear_hash_partitions_by_the_bytes_of_the_key_as_producers_do() -> None:
    document = only(LINEAR_HASH.replace("PROCESSORS", "processors: 2"))
    assert problems_of(document, build_nodes(document)) == ()
    (program,) = programs_of(document)
    keys = [number.to_bytes(8, "big") for number in range(50)]
    partition = program.with_counts({"out": 3}).partition("out")
    assert partition is not None
    assert [partition("out", None, key, None) for key in keys] == [
        linear_partition(key, 2, 3) for key in keys
    ]
    assert partition("out", None, None, None) is None
    narrow = program.with_counts({"out": 1}).partition("out")
    assert narrow is not None
    with pytest.raises(TaskMigrated, match="of out requires partition 1 of 1"):
        [narrow("out", None, key, None) for key in keys]


@pytest.mark.parametrize(("declared", "found"), [("", "follow"), ("processors: 1", "1")])
def test_linear_hash_is_refused_without_the_processors_that_it_is_for(declared: str, found: str) -> None:
    of_sink = LINEAR_HASH.replace("static.partitioner.class: linear-hash, ", "")
    of_sink = of_sink.replace("name: out", "name: out, partitioner: linear-hash")
    document = only(of_sink.replace("PROCESSORS", declared))
    (problem,) = problems_of(document, build_nodes(document))
    assert (problem.code, problem.found) == (ProblemCode.INVALID_CONFIG, f"`processors: {found}`")
    assert problem.expected == "at least `processors: 2`, as `static.partitioner.initial.partitions`"
    of_application = only(LINEAR_HASH.replace("PROCESSORS", declared))
    assert problems_of(of_application, build_nodes(of_application)) == ()  # reported by the compiler


def test_linear_hash_keeps_its_initial_number_with_more_processors() -> None:
    of_sink = LINEAR_HASH.replace("static.partitioner.class: linear-hash, ", "")
    document = only(
        of_sink.replace("name: out", "name: out, partitioner: linear-hash").replace(
            "PROCESSORS", "processors: 3"
        )
    )
    assert problems_of(document, build_nodes(document)) == ()


EVERY_EXPRESSION = """
application: {id: app}
topology:
  - stream: {topic: in, timestamp: OF_RECORD, as: s}
  - table: {topic: t, as: t}
  - globalTable: {topic: g, as: g}
  - filter: {from: s, where: OF_RECORD}
  - map: {key: OF_RECORD, value: OF_RECORD}
  - flatMap: {each: OF_RECORD}
  - flatMapValues: {each: OF_RECORD}
  - peek:
  - split: {branches: [{where: OF_RECORD}]}
  - groupBy: {from: s, key: OF_RECORD, as: grouped}
  - aggregate: {init: OF_NOTHING, add: OF_FOLD}
  - windowedBy: {from: grouped, session: {gap: 1}}
  - aggregate: {init: OF_NOTHING, add: OF_FOLD, merge: OF_PAIR}
  - groupBy: {from: t, key: OF_RECORD, value: OF_RECORD}
  - reduce: {add: OF_FOLD, remove: OF_FOLD}
  - mapValues: {from: t, value: OF_RECORD}
  - join: {from: s, with: s, window: {difference: 1}, value: OF_PAIR}
  - join: {from: s, with: t, value: OF_PAIR}
  - join: {from: s, with: g, key: OF_RECORD, value: OF_PAIR}
  - join: {from: t, with: t, value: OF_PAIR}
  - join: {from: t, with: t, foreignKey: OF_RECORD, value: OF_PAIR}
  - toStream:
  - to: {extractor: OF_RECORD}
"""


def test_what_is_checked_is_what_runs() -> None:
    """The names that the check accepts are those that operators bind."""
    current = "timestamp, headers, topic, partition, offset"
    text = EVERY_EXPRESSION
    for placeholder, names in (
        ("OF_RECORD", f"struct(key, value, {current})"),
        ("OF_FOLD", f"struct(key, total, value, {current})"),
        ("OF_PAIR", f"struct(key, left, right, {current})"),
        ("OF_NOTHING", f"struct({current})"),
    ):
        text = text.replace(placeholder, f'"{names}"')
    document = only(text)
    assert problems_of(document, build_nodes(document)) == ()
    lent: dict[str, Value] = {}
    for program in sorted(programs_of(document), key=lambda each: not each.is_global):
        task = Task(program, 0, MemoryState(), lent)
        lent |= task.stores if program.is_global else {}
