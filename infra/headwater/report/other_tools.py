"""Topics and ACLs as resources of Strimzi, Terraform and Jikkou, and what such tools must ignore.

Each function takes applications without errors: a list that misses topics would let a tool delete them.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import yaml

from headwater.model.acls import Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.compiled import CompiledApplication
from headwater.planner.acls import acls_of, application_needs

_NOT_DNS = re.compile(r"[^a-z0-9.-]|^[^a-z0-9]|[^a-z0-9]$|\.[-.]|-\.")
_USER, _COMMON_NAME = "User:", "CN="
_DIGITS = 8
_INTERNAL = (
    ".+-(changelog|repartition|subscription-registration-topic|subscription-response-topic)"
    "|KTABLE-FK-JOIN-SUBSCRIPTION-(REGISTRATION|RESPONSE)-[0-9]+-topic"
)
"""What follows the application id: the names that Kafka Streams' reset tool deletes."""


class NotExpressibleError(ValueError):
    """A resource that the other tool cannot declare; the text says what to change."""


@attrs.frozen
class DeclaredTopic:
    """A topic that an application needs; `replication_factor` None = the brokers' default."""

    application: str
    name: str
    partitions: int
    replication_factor: int | None
    config: Mapping[str, str]


def declared_topics(compiled: Sequence[CompiledApplication]) -> tuple[DeclaredTopic, ...]:
    """Return internal topics and managed sinks by name. A sink of several applications is returned once."""
    found: dict[str, DeclaredTopic] = {}
    for each in compiled:
        for topic in each.internal_topics:
            factor = topic.replication_factor if topic.replication_factor > 0 else None
            found[topic.name] = DeclaredTopic(
                each.application.id, topic.name, topic.partitions, factor, topic.config
            )
        for sink in each.sinks:
            if sink.partitions is not None:
                found[sink.topic] = DeclaredTopic(
                    each.application.id, sink.topic, sink.partitions, sink.replication_factor, sink.config
                )
    return tuple(found[name] for name in sorted(found))


def _declared_acls(compiled: Sequence[CompiledApplication]) -> tuple[Acl, ...]:
    """Return the ACLs of the documents that declare `acls`, each once."""
    acls = (
        acl
        for each in compiled
        if (declared := each.application.acls) is not None
        for acl in acls_of(application_needs(each, declared), declared.principals, declared.hosts)
    )
    return tuple(dict.fromkeys(acls))


def strimzi_resources(compiled: Sequence[CompiledApplication], cluster: str) -> str:
    """Return a `KafkaTopic` for each topic, and a `KafkaUser` with the ACLs of each principal, as YAML.

    `cluster` is the name of the `Kafka` resource. A topic whose name is no name of a Kubernetes resource gets
    a similar one. Source: the resource definitions of Strimzi, `kafka.strimzi.io/v1`.

    Raises:
        NotExpressibleError: `cluster` or a principal has no name of a Kubernetes resource, or two principals
            have the same one.
    """
    if not cluster or _NOT_DNS.search(cluster):
        raise NotExpressibleError(
            f"{cluster!r} cannot be the name of a Kafka resource: lower-case letters, digits, `-`, `.` only."
        )
    resources = [_kafka_topic(topic, cluster) for topic in declared_topics(compiled)]
    acls: defaultdict[str, list[Acl]] = defaultdict(list)
    for acl in _declared_acls(compiled):
        acls[acl.principal].append(acl)
    users = {principal: _kafka_user(principal, each, cluster) for principal, each in sorted(acls.items())}
    names = [user["metadata"]["name"] for user in users.values()]
    for principal, name in zip(users, names, strict=True):
        if names.count(name) > 1:
            raise NotExpressibleError(
                f"Strimzi's KafkaUser {name} cannot have {principal} and another principal: use one of them."
            )
    return _write_yaml([*resources, *users.values()])


def jikkou_resources(compiled: Sequence[CompiledApplication]) -> str:
    """Return a `KafkaTopic` for each topic, and a `KafkaPrincipalAuthorization` of each principal, as YAML.

    Source: the resource definitions of Jikkou, `kafka.jikkou.io/v1`.
    """
    resources = [
        _jikkou_resource(
            "KafkaTopic",
            topic.name,
            {
                "partitions": topic.partitions,
                "replicas": topic.replication_factor or -1,
                "configs": dict(topic.config),
            },
            labels={"application": topic.application},
        )
        for topic in declared_topics(compiled)
    ]
    principals: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for principal, host, permission, operations in _by_resource(_declared_acls(compiled)):
        principals[principal].append(
            {
                "resource": {
                    "type": _upper_case(permission.kind),
                    "pattern": permission.name,
                    "patternType": _upper_case(permission.pattern),
                },
                "type": "ALLOW",
                "operations": [_upper_case(operation) for operation in operations],
                "host": host,
            }
        )
    resources += [
        _jikkou_resource("KafkaPrincipalAuthorization", principal, {"acls": acls})
        for principal, acls in sorted(principals.items())
    ]
    return _write_yaml(resources)


def terraform_resources(compiled: Sequence[CompiledApplication]) -> dict[str, Any]:
    """Return `kafka_topic` and `kafka_acl` of the provider Mongey/kafka, in Terraform's JSON syntax.

    Raises:
        NotExpressibleError: A topic has no declared replication factor, which the provider requires.
    """
    topics = declared_topics(compiled)
    without = sorted({topic.application for topic in topics if topic.replication_factor is None})
    if without:
        raise NotExpressibleError(
            f"Terraform's provider requires a replication factor. Declare `replication.factor` in the config "
            f"of {', '.join(without)}, and `replicationFactor` of its managed sinks."
        )
    resources: dict[str, Any] = {
        "kafka_topic": {
            _unique_label(topic.name): {
                "name": topic.name,
                "partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
                "config": {key: _escape_template(value) for key, value in topic.config.items()},
                "lifecycle": {"prevent_destroy": True},
            }
            for topic in topics
        }
    }
    if acls := _declared_acls(compiled):
        resources["kafka_acl"] = {
            _unique_label(acl.text): {
                "resource_name": _escape_template(acl.permission.name),
                "resource_type": acl.permission.kind.value,
                "resource_pattern_type_filter": acl.permission.pattern.value,
                "acl_principal": _escape_template(acl.principal),
                "acl_host": acl.host,
                "acl_operation": acl.permission.operation.value,
                "acl_permission_type": "Allow",
            }
            for acl in acls
        }
    return {"resource": resources}


def exclusion_patterns(compiled: Sequence[CompiledApplication]) -> str:
    """Return regular expressions, one a line, of the topics that other tools must neither change nor delete.

    They match the internal topics of each application, also of a later topology, and Headwater's own
    topics. Managed sinks are listed by name.
    """
    lines: list[str] = [r"^headwater-.+$"]
    for each in compiled:
        pattern = rf"^{_escape_pattern(each.application.id)}-({_INTERNAL})$"
        lines.append(pattern)
        named = [topic.name for topic in each.internal_topics if not re.match(pattern, topic.name)]
        lines += [f"^{_escape_pattern(name)}$" for name in (*named, *(sink.topic for sink in each.sinks))]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _kafka_topic(topic: DeclaredTopic, cluster: str) -> dict[str, Any]:
    name = _dns_name(topic.name)
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaTopic",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {
            **({"topicName": topic.name} if name != topic.name else {}),
            "partitions": topic.partitions,
            **({"replicas": topic.replication_factor} if topic.replication_factor else {}),
            "config": dict(topic.config),
        },
    }


def _kafka_user(principal: str, acls: Sequence[Acl], cluster: str) -> dict[str, Any]:
    name = principal.removeprefix(_USER).removeprefix(_COMMON_NAME)
    if not principal.startswith(_USER) or _NOT_DNS.search(name):
        raise NotExpressibleError(
            f"Strimzi's KafkaUser cannot have the principal {principal}. Its name must be `User:NAME` or "
            "`User:CN=NAME`, where NAME has lower-case letters, digits, `-` and `.` only."
        )
    is_certificate = principal.startswith(_USER + _COMMON_NAME)
    return {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaUser",
        "metadata": {"name": name, "labels": {"strimzi.io/cluster": cluster}},
        "spec": {
            **({"authentication": {"type": "tls-external"}} if is_certificate else {}),
            "authorization": {
                "type": "simple",
                "acls": [
                    {
                        "resource": _strimzi_resource(permission),
                        "operations": [operation.value for operation in operations],
                        "host": host,
                    }
                    for _, host, permission, operations in _by_resource(acls)
                ],
            },
        },
    }


def _strimzi_resource(permission: Permission) -> dict[str, str]:
    if permission.kind is ResourceKind.CLUSTER:
        return {"type": "cluster"}
    return {
        "type": _STRIMZI_KINDS[permission.kind],
        "name": permission.name,
        "patternType": "prefix" if permission.pattern is Pattern.PREFIXED else "literal",
    }


_STRIMZI_KINDS = {
    ResourceKind.TOPIC: "topic",
    ResourceKind.GROUP: "group",
    ResourceKind.TRANSACTIONAL_ID: "transactionalId",
}


def _jikkou_resource(
    kind: str, name: str, spec: Mapping[str, Any], labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    metadata = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "kafka.jikkou.io/v1", "kind": kind, "metadata": metadata, "spec": dict(spec)}


def _by_resource(acls: Sequence[Acl]) -> Iterator[tuple[str, str, Permission, tuple[Operation, ...]]]:
    """Yield principal, host, a permission of the resource and all operations, in the order of the ACLs."""
    grouped: defaultdict[tuple[str, str, ResourceKind, str, Pattern], list[Permission]] = defaultdict(list)
    for acl in acls:
        permission = acl.permission
        key = (acl.principal, acl.host, permission.kind, permission.name, permission.pattern)
        grouped[key].append(permission)
    for (principal, host, *_), permissions in grouped.items():
        yield principal, host, permissions[0], tuple(each.operation for each in permissions)


def _upper_case(word: str) -> str:
    """Return `TransactionalID` as `TRANSACTIONAL_ID`, Kafka's own spelling."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).upper()


def _dns_name(name: str) -> str:
    """Return a name of a Kubernetes resource (RFC 1123): `name`, or a similar unique one."""
    if not _NOT_DNS.search(name):
        return name
    similar = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-")
    return f"{similar or 'topic'}-{_digest_name(name)}"


def _unique_label(name: str) -> str:
    """Return a unique name of a Terraform resource: letters, digits, `_` and `-`, no digit at its start."""
    similar = re.sub(r"[^A-Za-z0-9_-]", "_", name)
    if similar == name and not name[0].isdigit() and name[0] != "-":
        return name
    return f"_{similar}_{_digest_name(name)}"


def _digest_name(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]


def _escape_template(text: str) -> str:
    """Return a text in which Terraform's JSON syntax finds no template."""
    return text.replace("${", "$${").replace("%{", "%%{")


def _escape_pattern(name: str) -> str:
    """Return a regular expression of a topic name, in any dialect: only its dots matter."""
    return name.replace(".", r"\.")


def _write_yaml(resources: Sequence[Mapping[str, Any]]) -> str:
    return yaml.safe_dump_all(resources, sort_keys=False, explicit_start=True, width=10_000)
