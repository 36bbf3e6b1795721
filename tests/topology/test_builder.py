"""The builder makes the same documents as YAML, for every operator and option of the schema."""

import inspect
import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import attrs
import pytest

from headwater.compiler import build_nodes, compile_documents
from headwater.describe import write_description
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.model.topology import TopologyDocument
from headwater.report import compile_json
from headwater.spec import load_text
from headwater.spec.schema import document_schema, operator_names
from headwater.topology import (
    BranchedKStream,
    BuiltDocument,
    CogroupedKStream,
    GlobalKTable,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    StreamsBuilder,
    Topology,
    WindowedKStream,
)
from headwater.topology.calls import class_name
from headwater.topology.stream_or_table import JoinOptions
from headwater_spark.processors import Processor
from tests.yaml_text import load_yaml

_SCHEMA = document_schema()
_EXAMPLES = Path(__file__).parents[2] / "topology_schemas" / "examples"
_KINDS = (
    *(KStream, KTable, KGroupedStream, KGroupedTable, WindowedKStream, CogroupedKStream, GlobalKTable),
    *(BranchedKStream, StreamsBuilder, Topology),
)
_WITHOUT_PARAMETER = {
    "stream": {"topics"},  # `topic` takes several
    "addSource": {"topics"},
    "split": {"branches", "default"},  # calls of the result
}


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def parameter(option: str) -> str:
    name = snake(option)
    return f"{name}_" if name in {"class", "type", "as", "with", "from"} else name


def methods(operator: str) -> Iterator[Any]:
    """Yield the methods of all classes for an operator."""
    yield from (getattr(kind, snake(operator)) for kind in _KINDS if hasattr(kind, snake(operator)))


def parameters(method: Any) -> set[str]:  # noqa: ANN401 - a method
    found = inspect.signature(method).parameters.values()
    names = {each.name for each in found if each.kind is not each.VAR_KEYWORD}
    return names | (
        set(JoinOptions.__annotations__) if any(each.kind is each.VAR_KEYWORD for each in found) else set()
    )


@pytest.mark.parametrize("operator", operator_names())
def test_every_operator_has_a_method_with_all_of_its_options(operator: str) -> None:
    """`from` is the object of the call, `with` its first argument."""
    found = [parameters(method) for method in methods(operator)]
    assert found
    options = set(_SCHEMA["$defs"][f"op.{operator}"]["properties"]) - {"from", "with"}
    options -= _WITHOUT_PARAMETER.get(operator, set())
    missing = {option for option in options if not any(parameter(option) in names for names in found)}
    assert not missing


class Replay:
    """Repeats the steps of a document as calls of the builder."""

    def __init__(self) -> None:
        self.builder = StreamsBuilder()
        self._objects: dict[str, Any] = {}

    def steps(self, steps: list[dict[str, Any]], preceding: Any = None) -> Any:  # noqa: ANN401 - of any kind
        for step in steps:
            ((operator, given),) = step.items()
            options = {"topic": given} if isinstance(given, str) else dict(given or {})
            source = self._objects[options.pop("from")] if "from" in options else preceding
            handle = options.get("as")
            preceding = self._call(operator, source, options)
            if handle is not None:
                self._objects[handle] = preceding
        return preceding

    def _call(self, operator: str, source: Any, options: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        if operator == "split":
            return self._split(source, options)
        if "topics" in options:
            options["topic"] = options.pop("topics")
        others = [self._objects[options.pop("with")]] if "with" in options else []
        if operator == "connectProcessorAndStateStores":
            return self.builder.connect_processor_and_state_stores(options["processor"], *options["stores"])
        owner = self.builder if hasattr(self.builder, snake(operator)) else source
        named = {parameter(option): value for option, value in options.items()}
        return getattr(owner, snake(operator))(*others, **named)

    def _split(self, source: KStream, options: dict[str, Any]) -> None:
        branched = source.split(name=options.get("name"))
        prefix = options.get("name") or ""
        keys = {}
        for number, branch in enumerate(options.get("branches", ()), 1):
            branched.branch(**self._branch(branch))
            keys[branch.get("as")] = f"{prefix}{branch.get('name') or number}"
        default = options.get("default", False)
        if default is False:
            streams = branched.no_default_branch()
        else:
            default = {} if default is True else default
            streams = branched.default_branch(**self._branch(default))
            keys[default.get("as")] = f"{prefix}{default.get('name') or 0}"
        self._objects |= {handle: streams[key] for handle, key in keys.items() if handle and key in streams}

    def _branch(self, given: Mapping[str, Any]) -> dict[str, Any]:
        options = {parameter(key): value for key, value in given.items()}
        if "then" in options:
            steps = options["then"]
            options["then"] = lambda records: self.steps(steps, records)
        return options


def replayed(text: str) -> tuple[TopologyDocument, TopologyDocument]:
    """Return the document of a YAML text, and the document of the same calls of the builder."""
    (expected,) = load_text(text, "document.yaml").documents
    data = load_yaml(text)
    replay = Replay()
    replay.steps(data["topology"])
    built = replay.builder.document(
        data["application"]["id"],
        application={key: value for key, value in data["application"].items() if key != "id"},
        **{section: data.get(section) for section in ("topics", "acls", "leftovers")},
    )
    return expected, built.checked()


def without_locations(value: Any) -> Any:  # noqa: ANN401 - any part of a document
    """Return steps without locations and handles: `from` may be written or not."""
    if isinstance(value, tuple):
        return tuple(without_locations(each) for each in value)
    if attrs.has(type(value)):
        left_out = {"at", "input", "alias", "with_", "other"}
        return (
            type(value).__name__,
            *(
                (name, without_locations(item))
                for name, item in attrs.asdict(value, recurse=False).items()
                if name not in left_out
            ),
        )
    return value


_DOCUMENTS = [
    (file.name, text)
    for file in sorted(_EXAMPLES.rglob("*.yaml"))
    if "topology" in load_yaml(text := file.read_text())
]


@pytest.mark.parametrize("text", [text for _, text in _DOCUMENTS], ids=[name for name, _ in _DOCUMENTS])
def test_the_builder_makes_the_same_document_as_yaml(text: str) -> None:
    expected, built = replayed(text)
    assert without_locations(built.steps) == without_locations(expected.steps)
    assert write_description(build_nodes(built)) == write_description(build_nodes(expected))
    counts = dict.fromkeys(
        {topic for part in compile_documents([expected], {}) for topic in part.missing_sources}, 4
    )
    results = [compile_json(compile_documents([each], counts)) for each in (expected, built)]
    for result in results:
        for application in result["applications"]:
            application["problems"] = [(each["code"], each["summary"]) for each in application["problems"]]
    assert results[0] == results[1]


def test_the_examples_have_every_operator() -> None:
    used = {
        operator for _, text in _DOCUMENTS for operator in re.findall(r"^\s*- (\w+):", text, re.MULTILINE)
    }
    assert set(operator_names()) <= used


def test_the_fluent_form_of_the_guide() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", serdes={"key": "string", "value": "json"})
    customers = builder.table("customers", materialized="customer-store")
    counts = orders.group_by("value.customer", name="by-customer").count(materialized="counts")
    counts.to_stream().to("busy")
    orders.select_key("value.customer").join(customers, "struct(left.*, right.name)").to("named-orders")
    document = builder.document("busy", config={"replication.factor": 3}, topics={"busy": {}})
    assert load_yaml(document.yaml()) == {
        "application": {"id": "busy", "config": {"replication.factor": 3}},
        "topology": [
            {"stream": {"topic": "orders", "serdes": {"key": "string", "value": "json"}, "as": "stream-1"}},
            {"table": {"topic": "customers", "materialized": "customer-store", "as": "table-1"}},
            {"groupBy": {"from": "stream-1", "key": "value.customer", "name": "by-customer"}},
            {"count": {"materialized": "counts"}},
            {"toStream": {}},
            {"to": {"topic": "busy"}},
            {"selectKey": {"from": "stream-1", "key": "value.customer"}},
            {"join": {"with": "table-1", "value": "struct(left.*, right.name)"}},
            {"to": {"topic": "named-orders"}},
        ],
        "topics": {"busy": {}},
    }
    assert document.checked().application.id == "busy"


def test_branches_continue_at_once_or_later() -> None:
    builder = StreamsBuilder()
    streams = (
        builder.stream("orders")
        .split(name="by-")
        .branch("value.country = 'US'", name="us", then=lambda orders: orders.map_values("value.amount"))
        .branch("value.country = 'FR'", name="fr")
        .default_branch(then=lambda orders: orders.to("others"))
    )
    assert streams.keys() == {"by-us", "by-fr"}
    streams["by-us"].merge(streams["by-fr"]).to("both")
    (split,) = (step["split"] for step in builder.document("a").data["topology"] if "split" in step)
    assert split["default"] == {"then": [{"to": {"topic": "others"}}]}
    assert split["branches"][0]["then"] == [{"mapValues": {"value": "value.amount"}}]
    builder.document("a").checked()


def test_the_records_of_a_continued_branch_are_taken_once() -> None:
    def twice(orders: KStream) -> None:
        orders.to("one")
        orders.to("two")

    with pytest.raises(ValueError, match=r"Only the first call of `then`"):
        StreamsBuilder().stream("orders").split().branch("true", then=twice)


def test_a_handle_is_used_once() -> None:
    builder = StreamsBuilder()
    builder.stream("a", as_="orders")
    with pytest.raises(ValueError, match="'orders'"):
        builder.stream("b", as_="orders")


def test_a_chosen_handle_does_not_collide_with_generated_ones() -> None:
    builder = StreamsBuilder()
    first, second = builder.stream("a", as_="stream-1"), builder.stream("b")
    builder.stream("c")
    first.merge(second).to("d")
    builder.document("app").checked()


def test_classes_are_named_by_their_modules() -> None:
    builder = StreamsBuilder()
    builder.stream("orders").process(Processor, name="score", stores=[{"name": "scores", "kind": "keyValue"}])
    assert builder.document("a").data["topology"][1] == {
        "process": {
            "class": "headwater_spark.processors:Processor",
            "stores": [{"name": "scores", "kind": "keyValue"}],
            "name": "score",
        }
    }


def test_a_class_that_workers_cannot_import_is_refused() -> None:
    class Local(Processor):
        pass

    with pytest.raises(ValueError, match=r"it is defined in a function\. Move it into a module"):
        class_name(Local)
    in_notebook = type("Scorer", (), {"__module__": "__main__", "__qualname__": "Scorer"})
    with pytest.raises(ValueError, match="the main program or a notebook"):
        StreamsBuilder().stream("a").process(in_notebook)


def test_a_wrong_document_is_not_written(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream("orders").group_by_key().windowed_by(tumbling={"sise": "1h"}).count()
    document: BuiltDocument = builder.document("a")
    with pytest.raises(ProblemsError) as refused:
        document.write(tmp_path / "a.yaml")
    assert {problem.code for problem in refused.value.problems} == {ProblemCode.SCHEMA_VIOLATION}
    assert not (tmp_path / "a.yaml").exists()


def test_a_written_document_is_read_again(tmp_path: Path) -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"]).to("out")
    file = tmp_path / "topologies" / "app.yaml"
    builder.document("app").write(file)
    loaded = load_text(file.read_text(), "app.yaml")
    assert not loaded.problems
    assert loaded.documents[0].application.id == "app"


def test_texts_that_look_like_numbers_stay_text_in_the_file(tmp_path: Path) -> None:
    """YAML 1.2 reads 1e3 and 0o17 as numbers, other than PyYAML."""
    builder = StreamsBuilder()
    builder.stream("1e3").to("0o17")
    document = builder.document("007", config={"client.id": "1e3"})
    document.write(tmp_path / "app.yaml")
    loaded = load_text((tmp_path / "app.yaml").read_text(), "app.yaml")
    assert [document.application.id for document in loaded.documents] == ["007"]
    assert load_yaml(document.yaml()) == document.data


def test_a_mapping_may_be_used_for_several_topics() -> None:
    """Documents have no anchors and aliases."""
    builder, options = StreamsBuilder(), {"partitions": 3, "config": {"retention.ms": 60_000}}
    builder.stream("a").to("x")
    builder.stream("b").to("y")
    loaded = load_text(builder.document("app", topics={"x": options, "y": options}).yaml(), "app.yaml")
    assert not loaded.problems


def test_results_of_two_builders_are_not_combined() -> None:
    """The names of results of another builder could be names of other results in this one."""
    one, other = StreamsBuilder(), StreamsBuilder()
    customers = other.table("customers")
    with pytest.raises(ValueError, match="Results of two builders"):
        one.stream("orders").join(customers, "left.id")


def test_the_name_of_a_topic_is_no_stream() -> None:
    with pytest.raises(TypeError, match="'customers' is no stream or table"):
        StreamsBuilder().stream("orders").join("customers", "left.id")  # type: ignore[arg-type]


def test_a_stream_within_a_branch_gets_no_calls_after_the_branch() -> None:
    kept: list[KStream] = []

    def keep(orders: KStream) -> KStream:
        kept.append(orders.map_values("value.id"))
        return kept[0]

    StreamsBuilder().stream("orders").split().branch("true", then=keep)
    with pytest.raises(ValueError, match="continue with the stream that `no_default_branch` returns"):
        kept[0].filter("true")


def test_branches_have_different_names() -> None:
    split = StreamsBuilder().stream("orders").split().branch("a", name="us")
    with pytest.raises(ValueError, match="the same name 'us'"):
        split.branch("b", name="us")


def test_arguments_are_not_replaced_by_the_section_of_the_application() -> None:
    builder = StreamsBuilder()
    builder.stream("a").to("b")
    with pytest.raises(ValueError, match="Give config as arguments"):
        builder.document("app", config={"num.stream.threads": 2}, application={"config": {}})


def test_a_function_is_no_expression() -> None:
    with pytest.raises(TypeError, match="takes an expression of Spark SQL as text"):
        StreamsBuilder().stream("orders").filter(lambda record: record.value)  # type: ignore[arg-type]


def test_a_duration_is_text() -> None:
    with pytest.raises(TypeError, match="such as `1h`"):
        StreamsBuilder().add_state_store("s", kind="window", retention=timedelta(hours=1))  # type: ignore[arg-type]


def test_an_instance_is_no_class() -> None:
    with pytest.raises(TypeError, match="pass the class"):
        StreamsBuilder().stream("a").process(Processor())  # type: ignore[arg-type]
