"""The documents that `headwater import --all` writes, and what they compile to."""

from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.cli.imported_documents import file_names, observed_document
from headwater.compiler import compile_documents
from headwater.model.cluster import GroupFacts, GroupType, LiveTopic
from headwater.model.compiled import CompiledApplication, TopicKind
from headwater.model.problems import Problem, ProblemCode, Severity, errors
from headwater.planner.adoption import FoundApplication
from headwater.spec import load_documents, load_text

GOLDEN = Path(__file__).parent / "golden"
TOPICS = (
    LiveTopic(
        "app-by-x-repartition",
        "",
        4,
        3,
        {
            "cleanup.policy": "delete",
            "message.timestamp.type": "CreateTime",
            "retention.ms": "-1",
            "segment.bytes": "52428800",
        },
    ),
    LiveTopic("app-j-subscription-response-topic", "", 4, 3, {"cleanup.policy": "delete", "a.b": "on"}),
    LiveTopic(
        "app-s-changelog", "", 4, 3, {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}
    ),
    LiveTopic("app-w-changelog", "", 5, 2, {"cleanup.policy": "compact,delete", "retention.ms": "90000000"}),
    LiveTopic("app-x-changelog", "", 6, 3, {}),
)
FOUND = FoundApplication(
    id="app",
    group=GroupFacts(id="app", state="Stable", members=2, subscribed=frozenset({"in"})),
    topics=TOPICS,
    sources={"in": 4},
    missing_sources=("old-in",),
)
GONE = FoundApplication(
    id="app-eu",
    group=None,
    topics=(LiveTopic("app-eu-s-changelog", "", 1, 1, {}),),
    sources={},
    prefix_ids=("app",),
)


def compiled(
    text: str, partitions: dict[str, int] | None = None
) -> tuple[CompiledApplication, tuple[Problem, ...]]:
    loaded = load_text(text, "app.yaml")
    assert not errors(loaded.problems), loaded.problems
    (application,) = compile_documents(loaded.documents, partitions or {})
    return application, application.problems


def test_a_document_compiles_to_exactly_the_topics_found() -> None:
    application, problems = compiled(observed_document(FOUND, "cluster", {}))
    assert [
        LiveTopic(topic.name, "", topic.partitions, topic.replication_factor, topic.config)
        for topic in application.internal_topics
    ] == list(TOPICS)
    assert [topic.kind for topic in application.internal_topics] == [
        TopicKind.REPARTITION,
        TopicKind.FK_SUBSCRIPTION,
        TopicKind.CHANGELOG,
        TopicKind.CHANGELOG,
        TopicKind.CHANGELOG,
    ]
    assert application.external_sources == ("in",)
    assert [(p.code, p.severity) for p in problems] == [(ProblemCode.MISSING_DETAIL, Severity.INFO)]


@pytest.mark.parametrize(
    ("name", "found", "config"),
    [
        ("running.yaml", FOUND, {}),
        ("gone.yaml", GONE, {"internal.topics.setup": "manual"}),
        (
            "streams.yaml",
            FoundApplication(
                id="new",
                group=GroupFacts(id="new", type=GroupType.STREAMS, committed=frozenset({"in"})),
                topics=(LiveTopic("new-r-repartition", "", 2, 1, {}),),
                sources={"in": 2},
                ambiguities=("new-r-repartition could belong to ne, too.",),
            ),
            {},
        ),
    ],
)
def test_the_text_of_a_document(
    name: str, found: FoundApplication, config: dict[str, str], golden: Callable[[Path, str], None]
) -> None:
    golden(GOLDEN / name, observed_document(found, "Pb8QEjjNSZeqdoOWZfNKSA", config))


def test_unknown_facts_are_reported_at_their_location() -> None:
    _, problems = compiled(observed_document(GONE, "cluster", {}))
    assert [problem.location.pointer for problem in problems if problem.location] == [
        "/observed/unknown/0",
        "/observed/unknown/1",
        "/observed/unknown/2",
    ]
    assert {problem.severity for problem in problems} == {Severity.INFO}


@pytest.mark.parametrize(
    ("change", "partitions", "code", "severity"),
    [
        (("", ""), {"in": 6}, ProblemCode.UNDECIDABLE_PARTITIONS, Severity.ERROR),
        (("", ""), {"other": 4}, ProblemCode.MISSING_SOURCE_TOPIC, Severity.ERROR),
        (
            ("  id: app\n", "  id: app\n  config: {topic.segment.bytes: 1048576}\n"),
            {"in": 4},
            ProblemCode.CONFIG_HAS_NO_EFFECT,
            Severity.WARNING,
        ),
        (
            ("  id: app\n", "  id: app\n  config: {partition.autoscaling.enabled: true}\n"),
            {"in": 4},
            ProblemCode.MISSING_DETAIL,
            Severity.WARNING,
        ),
        (
            ("version: 1\n", "version: 1\ntopics: {out: {}}\n"),
            {"in": 4},
            ProblemCode.UNDECIDABLE_PARTITIONS,
            Severity.ERROR,
        ),
    ],
)
def test_changes_that_an_observed_application_cannot_follow_are_reported(
    change: tuple[str, str], partitions: dict[str, int], code: ProblemCode, severity: Severity
) -> None:
    text = observed_document(FOUND, "cluster", {}).replace(*change)
    application, problems = compiled(text, partitions)
    assert (code, severity) in [(problem.code, problem.severity) for problem in problems]
    assert [topic.partitions for topic in application.internal_topics] == [4, 4, 4, 5, 6]


def test_file_names_are_portable_and_unique() -> None:
    assert file_names(["a", "A", "a-2", ".hidden", "..", "Pulumi.a", "headwater-policies"]) == {
        "a": "a.yaml",
        "A": "A-2.yaml",
        "a-2": "a-2-2.yaml",
        ".hidden": "application.hidden.yaml",
        "..": "application...yaml",
        "Pulumi.a": "application-Pulumi.a.yaml",
        "headwater-policies": "application-headwater-policies.yaml",
    }


def test_documents_of_one_cluster_can_be_loaded_together(tmp_path: Path) -> None:
    for found in (FOUND, GONE):
        (tmp_path / f"{found.id}.yaml").write_text(observed_document(found, "cluster", {}))

    loaded = load_documents([tmp_path])
    assert len(loaded.documents) == 2
    assert [problem.severity for problem in loaded.problems] == [Severity.INFO]
