"""A topic has two managers: two applications, or two parts of one."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from headwater.model.problems import Problem, ProblemCode
from headwater.planner.actions import ActionKind, TopicAction
from headwater.planner.phrases import listed
from headwater.planner.plans import ApplicationPlan

_Managed = tuple[str, TopicAction]


def twice_managed(parts: Iterable[ApplicationPlan]) -> Iterator[Problem]:
    """Yield a problem for each topic with several actions: Pulumi registers a topic once.

    Topics that an application only keeps, releases or deletes count, because they are registered, too, or are
    removed from the cluster.
    """
    managers: defaultdict[str, list[_Managed]] = defaultdict(list)
    for part in parts:
        for action in part.actions:
            managers[action.name].append((part.application_id, action))
    for topic, managed in sorted(managers.items()):
        if len(managed) > 1:
            yield _problem(topic, managed)


def _problem(topic: str, managed: Sequence[_Managed]) -> Problem:
    applications = {application for application, _ in managed}
    ending = [(application, action) for application, action in managed if action.topic is None]
    if len(applications) == 1:
        (application,) = applications
        return _conflict(
            topic,
            f"Topic {topic} is an internal topic and a managed sink of {application}.",
            found="internal topic and managed sink",
            why="The topic cannot have the settings of both.",
            fix="Remove the topic from the section `topics` of the document.",
        )
    if not ending:
        return _conflict(
            topic,
            f"Topic {topic} is managed by more than one application.",
            found=listed(applications),
            why="Each application would set its own partition count and settings, and undo those of the "
            "other.",
            fix="Declare the topic in the document of one of them. The others may still write to it.",
        )
    former, action = ending[0]
    *_, (last, _) = managed
    owner = next((id_ for id_, other in managed if other.topic is not None), last)
    return _conflict(
        topic,
        f"Topic {topic} of {owner} still belongs to {former}.",
        found=listed(f"{id_} ({_role(other)})" for id_, other in managed),
        why=f"The topic holds data of {former}, and {owner} would continue with it. Only managed sinks move "
        "to another application.",
        fix=_fix(topic, former, owner, action.kind),
    )


def _conflict(topic: str, summary: str, *, found: str, why: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.CONFLICTING_PARTITIONS,
        summary=summary,
        topic=topic,
        expected="one application that manages it",
        found=found,
        why=why,
        fix=fix,
    )


def _role(action: TopicAction) -> str:
    if action.topic is not None:
        return "declares it"
    return {
        ActionKind.RELEASE: "releases it",
        ActionKind.RETIRE: "will delete it",
        ActionKind.DELETE: "deletes it",
    }.get(action.kind, "keeps it")


def _fix(topic: str, former: str, owner: str, kind: ActionKind) -> str:
    other = f"Or give the topic another name in {owner}."
    if kind is ActionKind.KEEP:
        return (
            f"If {former} no longer needs it, delete {topic} with `leftovers` of the document of {former}, "
            f"without the document of {owner}. {other}"
        )
    if kind is ActionKind.RELEASE:
        return f"Run `pulumi up` without the document of {owner} first: {former} then releases it. {other}"
    return f"Complete the retirement of {former} without the document of {owner} first. {other}"
