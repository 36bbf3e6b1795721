"""Documents before and after an edit, as texts of YAML."""

from collections.abc import Mapping

from headwater.model.cluster import ClusterSnapshot
from headwater.model.problems import errors
from headwater.planner.edits import (
    ApplicationEdit,
    Edit,
    OperatorEdit,
    TopicEdit,
    Topologies,
    compile_topologies,
    find_edit,
)
from headwater.spec import load_text

COUNTS = {"in": 4, "other": 4, "table": 4}
GENERATED = """
application: {id: app, kafkaStreams: "4.3"}
topology:
  - stream: {topic: in, as: s}
  - selectKey:
  - groupByKey:
  - count:
  - toStream:
  - to: out
  - groupByKey: {from: s}
  - reduce:
"""
COUNT, REDUCE = "KSTREAM-AGGREGATE-STATE-STORE-0000000002", "KSTREAM-REDUCE-STATE-STORE-0000000009"


def side(text: str, counts: Mapping[str, int] | None = None, file: str = "app.yaml") -> Topologies:
    """Compile the documents of a text, which have no errors."""
    loaded = load_text(text, file)
    assert not errors(loaded.problems), loaded.problems
    return compile_topologies(loaded.documents, {**COUNTS, **(counts or {})})


def edit(before: str, after: str, *, snapshot: ClusterSnapshot | None = None) -> Edit:
    return find_edit(side(before, file="before.yaml"), side(after, file="after.yaml"), snapshot=snapshot)


def of_one(before: str, after: str) -> ApplicationEdit:
    """Return the edit of the only application of both texts."""
    found = edit(before, after)
    assert not found.problems, found.problems
    (application,) = found.applications
    return application


def changed(application: ApplicationEdit) -> list[OperatorEdit]:
    """Return the operators that do something else, without those that only have another name or are new."""
    return [each for each in application.operators if each.aspect != "name" and not each.is_on_one_side]


def verdicts(application: ApplicationEdit) -> dict[str, str]:
    """Return store, or repartition topic without application id → verdict."""
    return {name(topic): topic.verdict.value for topic in application.topics}


def name(topic: TopicEdit) -> str:
    return topic.store or topic.topic.removeprefix("app-")
