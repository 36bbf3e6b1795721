"""The documents that `headwater import --all` writes, one for each application found."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from infra.compiler.observed import default_config, open_questions
from infra.model.cluster import LiveTopic
from infra.model.nodes import TopicKind
from infra.model.observed import ObservedTopology
from infra.model.problems import Location
from infra.model.survey import GroupFacts, GroupType
from infra.model.topology import Application, Protocol
from infra.planner.adoption import FoundApplication
from infra.planner.wording import counted
from infra.report.printable import printable

_NOWHERE = Location("")
_ENDINGS = {"-changelog": TopicKind.CHANGELOG, "-repartition": TopicKind.REPARTITION}


def observed_document(found: FoundApplication, cluster_id: str, config: Mapping[str, str]) -> str:
    """Return the YAML text: what the cluster shows, before it in comments what it does not.

    `config` are configs of the application that the document is to declare.
    """
    application: dict[str, Any] = {"id": found.id}
    if found.group is not None and found.group.type is GroupType.STREAMS:
        application["protocol"] = Protocol.STREAMS.value
    if config:
        application["config"] = dict(config)
    if setup := _setup(found, config):
        application["setup"] = setup
    observed = {
        **({"sources": dict(found.sources)} if found.sources else {}),
        "topics": {topic.name.removeprefix(f"{found.id}-"): _topic(topic) for topic in found.topics},
        "unknown": [unknown.value for unknown in found.unknown],
    }
    content = {"version": 1, "application": application, "observed": observed}
    text: str = yaml.dump(content, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000)
    return "".join(f"# {printable(line)}\n" for line in _comments(found, cluster_id)) + text


def file_names(ids: Iterable[str]) -> Mapping[str, str]:
    """Application id → file name; no two are equal on file systems that take upper for lower case.

    A name never begins with a dot: hidden files are no documents.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for id_ in ids:
        stem = f"application{id_}" if id_.startswith(".") else id_
        number = 1
        while (name := f"{stem}.yaml" if number == 1 else f"{stem}-{number}.yaml").casefold() in taken:
            number += 1
        taken.add(name.casefold())
        names[id_] = name
    return names


def kind_of(topic: str) -> TopicKind:
    """What an internal topic is for, by its name."""
    return next((kind for end, kind in _ENDINGS.items() if topic.endswith(end)), TopicKind.FK_SUBSCRIPTION)


def _setup(found: FoundApplication, config: Mapping[str, str]) -> dict[str, Any]:
    """What must be said for the first run to take the topics over as they are."""
    said = {
        "adopt": config.get("internal.topics.setup") == "manual",
        "allowIdOverlap": bool(found.shorter),
    }
    return {key: True for key, is_needed in said.items() if is_needed}


def _topic(topic: LiveTopic) -> dict[str, Any]:
    kind = kind_of(topic.name)
    described: dict[str, Any] = {"kind": kind.value, "partitions": topic.partitions}
    if topic.replication_factor > 0:
        described["replicationFactor"] = topic.replication_factor
    if topic.config != default_config(kind):
        described["config"] = dict(sorted(topic.config.items()))
    return described


def _comments(found: FoundApplication, cluster_id: str) -> Iterator[str]:
    yield f"What cluster {cluster_id} shows of {found.id}, written by `headwater import --all`."
    yield _told_of_group(found.id, found.group)
    if found.sources:
        yield (
            "Its sources are the topics that it subscribes to; global tables do not show."
            if found.group is not None and found.group.subscribed
            else "Its sources are the topics that it has offsets of; others, and global tables, do not show."
        )
    for topic in found.vanished:
        yield f"It has offsets of {topic}, which does not exist."
    for other in found.shorter:
        yield f"Its id begins with that of {other}: Kafka's reset tool, run for {other}, deletes its topics."
    for doubt in found.doubts:
        yield f"Doubt: {doubt}"
    observed = ObservedTopology((), _NOWHERE, unknown=dict.fromkeys(found.unknown, _NOWHERE))
    for question in open_questions(Application(found.id, _NOWHERE), observed):
        yield f"Missing: {question.summary} {question.fix}"


def _told_of_group(id_: str, group: GroupFacts | None) -> str:
    if group is None:
        return f"There is no group {id_}: the application does not run, and its offsets have expired."
    if group.type is GroupType.STREAMS:
        return "Its group is one of the streams protocol; whether it has members does not show."
    return f"Its group is in the state {group.state}, with {counted(group.members, 'member')}."


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """By libyaml if there is one; writes short lists on one line."""


_Dumper.add_representer(
    list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)
)
