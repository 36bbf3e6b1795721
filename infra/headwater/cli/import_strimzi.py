"""Topics and groups of a cluster from Strimzi's resources: `headwater import --all` then reads no cluster.

`KafkaTopic` resources show topics, the ACLs of `KafkaUser` resources show groups.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from headwater.model.cluster import GroupFacts, LiveTopic, Survey
from headwater.model.policies import matches_any
from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity, errors
from headwater.spec.files import find_files, read_regular_file
from headwater.spec.locations import mapping_of
from headwater.spec.scalars import config_text
from headwater.spec.topic_configs import broker_text
from headwater.spec.yaml_text import read_yaml

_API = "kafka.strimzi.io/"
_READ_OPERATIONS = {"Read", "All"}


def read_strimzi_survey(paths: Sequence[Path]) -> tuple[Survey, tuple[Problem, ...]]:
    """Return topics and groups of the resources in files and folders, such as `kubectl get -o yaml` writes.

    A user with permission to read a group belongs to an application, which reads the user's topics. Resources
    of other kinds are skipped. A `KafkaTopic` without a partition count is a warning, and is left out. Raises
    `ProblemsError` if a file cannot be read.
    """
    files, found = find_files(paths)
    problems = list(found)
    topics: dict[str, LiveTopic] = {}
    groups: dict[str, GroupFacts] = {}
    for file in files:
        for resource in _read_resources(file, problems):
            match resource.get("kind"):
                case "KafkaTopic":
                    topic = _read_topic(resource)
                    if topic is None:
                        problems.append(_without_partitions(resource, file))
                    else:
                        topics[topic.name] = topic
                case "KafkaUser":
                    for group in _readable_groups(resource):
                        read_by_others = groups.get(group.id, group).subscribed
                        groups[group.id] = attrs.evolve(group, subscribed=group.subscribed | read_by_others)
    if errors(problems):
        raise ProblemsError(problems)
    reading = {
        id_: attrs.evolve(
            group,
            subscribed=frozenset(name for name in topics if matches_any(name, group.read)),
        )
        for id_, group in groups.items()
    }
    return Survey("", topics, reading), tuple(problems)


def strimzi_notes(seen: Survey) -> Iterator[str]:
    """Yield a note if no resource is a topic."""
    if not seen.topics:
        yield "The files have no KafkaTopic of Strimzi (`apiVersion: kafka.strimzi.io/…`)."


def _read_resources(file: Path, problems: list[Problem]) -> Iterator[Mapping[str, Any]]:
    text = read_regular_file(file)
    if isinstance(text, Problem):
        problems.append(text)
        return
    documents, faults = read_yaml(text, str(file))
    problems.extend(faults)
    for document in documents:
        data = document.data
        items = data.get("items") if isinstance(data, dict) and data.get("kind") == "List" else [data]
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict) and str(item.get("apiVersion", "")).startswith(_API):
                yield item


def _read_topic(resource: Mapping[str, Any]) -> LiveTopic | None:
    spec = mapping_of(resource.get("spec"))
    name = spec.get("topicName") or mapping_of(resource.get("metadata")).get("name")
    partitions, replicas = spec.get("partitions"), spec.get("replicas")
    if not isinstance(partitions, int) or not isinstance(name, str):
        return None
    config = {
        key: broker_text(key, config_text(value))
        for key, value in mapping_of(spec.get("config")).items()
        if isinstance(value, str | int | float)
    }
    return LiveTopic(name, "", partitions, replicas if isinstance(replicas, int) else 0, config)


def _readable_groups(resource: Mapping[str, Any]) -> Iterator[GroupFacts]:
    """Yield the groups that a user may read by name, with the topics that the user may read.

    `v1beta2` also has `operation`, one for each rule.
    """
    names: defaultdict[str, set[str]] = defaultdict(set)
    authorization = mapping_of(mapping_of(resource.get("spec")).get("authorization"))
    acls = authorization.get("acls")
    for acl in acls if isinstance(acls, list) else ():
        rule = mapping_of(acl)
        target, given = mapping_of(rule.get("resource")), rule.get("operations", rule.get("operation"))
        name, operations = target.get("name"), set(map(str, given if isinstance(given, list) else [given]))
        if isinstance(name, str) and rule.get("type", "allow") == "allow" and _READ_OPERATIONS & operations:
            star = "*" if target.get("patternType") == "prefix" and not name.endswith("*") else ""
            names[str(target.get("type"))].add(f"{name}{star}")
    topics = frozenset(names["topic"])
    yield from (GroupFacts(id=name, subscribed=topics) for name in sorted(names["group"]) if "*" not in name)


def _without_partitions(resource: Mapping[str, Any], file: Path) -> Problem:
    name = mapping_of(resource.get("metadata")).get("name", "")
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"KafkaTopic {name} has no partition count.",
        topic=str(name) or None,
        expected="`spec.partitions`, a number",
        found="none",
        why="The count is the brokers' default, or the count of a topic that existed before. The imported "
        "documents do not have this topic.",
        fix="Add `spec.partitions`, or import from the cluster (`--bootstrap-server`).",
        location=Location(str(file)),
        severity=Severity.WARNING,
    )
