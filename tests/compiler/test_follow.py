"""Managed sinks that follow their writers, within one application and over several."""

from headwater.compiler import compile_documents
from headwater.model.problems import ProblemCode
from tests.compiler.applications import codes, compiled, counts, document, problems_without_lints


def copy(id_: str, source: str, sink: str, partitions: str = "follow") -> str:
    return f"""
    application: {{id: {id_}}}
    topics: {{{sink}: {{partitions: {partitions}}}}}
    topology: [{{stream: {{topic: {source}}}}}, {{groupBy: {{name: by}}}}, {{count: {{materialized: c}}}},
               {{toStream: {{}}}}, {{to: {{topic: {sink}}}}}]
    """


def test_a_sink_follows_the_subtopology_that_writes_it() -> None:
    application = compiled(copy("one", "in", "out"), {"in": 6})
    assert [(sink.topic, sink.partitions) for sink in application.sinks] == [("out", 6)]


def test_a_chain_of_applications_in_any_order() -> None:
    documents = [
        document(copy("three", "second", "third")),
        document(copy("two", "first", "second")),
        document(copy("one", "in", "first")),
    ]
    compiled_ = compile_documents(documents, {"in": 4, "first": 2})
    assert [application.application.id for application in compiled_] == ["three", "two", "one"]
    assert [application.sinks[0].partitions for application in compiled_] == [4, 4, 4]
    assert [counts(application) for application in compiled_] == [{"by-repartition": 4, "c-changelog": 4}] * 3
    assert not any(problems_without_lints(application) for application in compiled_)


def test_an_explicit_count_is_used_before_the_topic_exists() -> None:
    documents = [document(copy("one", "in", "first", "12")), document(copy("two", "first", "second"))]
    _, second = compile_documents(documents, {"in": 4})
    assert second.sinks[0].partitions == 12


def test_a_topic_that_is_already_larger_keeps_its_count() -> None:
    documents = [document(copy("one", "in", "first")), document(copy("two", "first", "second"))]
    first, second = compile_documents(documents, {"in": 4, "first": 9})
    assert (first.sinks[0].partitions, second.sinks[0].partitions) == (4, 9)


def test_a_cycle_of_applications_is_an_error_in_each() -> None:
    documents = [document(copy("one", "b", "a")), document(copy("two", "a", "b"))]
    found = compile_documents(documents, {})
    assert [codes(problems_without_lints(application)) for application in found] == [
        [ProblemCode.FOLLOW_CYCLE]
    ] * 2
    assert found[0].problems[0].found == "b → a → b"


def test_a_topic_that_follows_its_own_reader_is_an_error() -> None:
    text = """
    topics: {loop: {partitions: follow}}
    topology: [{stream: {topic: loop}}, {filter: {}}, {to: {topic: loop}}]
    """
    assert codes(problems_without_lints(compiled(text))) == [ProblemCode.FOLLOW_CYCLE]


def test_reading_the_own_sink_in_another_subtopology_is_no_cycle() -> None:
    text = """
    topics: {middle: {partitions: follow}}
    topology: [{stream: {topic: in}}, {to: {topic: middle}},
               {stream: {topic: middle}}, {groupByKey: {}}, {count: {materialized: c}}]
    """
    application = compiled(text, {"in": 3})
    assert counts(application) == {"c-changelog": 3}
    assert problems_without_lints(application) == ()


def test_a_pattern_reads_topics_that_do_not_exist_yet() -> None:
    reader = (
        "application: {id: two}\ntopology: [{stream: {pattern: 'fir.*'}}, {groupBy: {name: by}}, {count: {}}]"
    )
    documents = [document(reader), document(copy("one", "in", "first"))]
    found = compile_documents(documents, {"in": 5})
    assert found[0].external_sources == ("first",)
    assert counts(found[0])["by-repartition"] == 5


def test_an_undecided_count_of_another_application_is_reported() -> None:
    documents = [document(copy("one", "missing", "first")), document(copy("two", "first", "second"))]
    first, second = compile_documents(documents, {})
    assert codes(problems_without_lints(first)) == [ProblemCode.MISSING_SOURCE_TOPIC]
    assert codes(problems_without_lints(second)) == [ProblemCode.UNDECIDABLE_PARTITIONS]
    assert problems_without_lints(second)[0].fix == "Fix the problems of one first."


def test_a_count_follows_only_what_its_own_writers_read() -> None:
    """One sub-topology writes `first`, another one reads `back`, before a sink with a count."""
    one = """
    application: {id: one}
    topics: {middle: {partitions: 4}, first: {partitions: follow}}
    topology: [{stream: {topic: back}}, {to: {topic: middle}},
               {stream: {topic: missing, as: m}},
               {stream: {topic: middle}}, {merge: {with: m}}, {to: {topic: first}}]
    """
    found = compile_documents([document(one), document(copy("two", "first", "back"))], {})
    reported = [(problem.code, problem.topic) for each in found for problem in problems_without_lints(each)]
    assert reported == [
        (ProblemCode.MISSING_SOURCE_TOPIC, "missing"),
        (ProblemCode.UNDECIDABLE_PARTITIONS, "back"),
        (ProblemCode.UNDECIDABLE_PARTITIONS, "first"),
    ]


def test_a_sink_without_a_writer_is_an_error() -> None:
    text = "topics: {out: {partitions: follow}}\ntopology: [{stream: {topic: in}}, {to: {topic: other}}]"
    application = compiled(text, {"in": 3})
    assert [(p.code, p.topic) for p in problems_without_lints(application)] == [
        (ProblemCode.UNDECIDABLE_PARTITIONS, "out")
    ]
