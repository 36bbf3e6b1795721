"""Observe what the user may do, with requests that the brokers validate but do not execute."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation  # type: ignore[attr-defined]  # public in the library

from headwater.change import admin_client, request_config_changes, request_new_partitions, request_new_topics
from headwater.cli.doctor.kafka_cluster import TIMEOUT_SECONDS
from headwater.doctor.permissions import CLUSTER_RIGHTS, REQUIRED, PermissionFacts, Purpose, Right
from headwater.kafka import Connection, snapshot_request
from headwater.kafka.acl_bindings import acl_of
from headwater.kafka.group_admin import GroupAdmin
from headwater.model.acls import Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.problems import ProblemsError
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.model.topology import TopologyDocument

if TYPE_CHECKING:
    from concurrent.futures import Future

_EXAMPLE = "headwater-doctor"
_ANYONE = "User:*"
_GRACE_SECONDS = 5.0


@attrs.frozen
class _Probe:
    """A topic that does not exist: the brokers check the permission before they find that out."""

    name: str
    partitions: int | None = 1_000
    replication_factor: int = -1
    config: Mapping[str, Any] = attrs.field(factory=lambda: {"retention.ms": "-1"})


@attrs.frozen(kw_only=True)
class _Names:
    """The names to check: `topics` may exist, `probes` do not exist."""

    topics: Sequence[str]
    probes: Sequence[_Probe]
    groups: Sequence[str]
    new: Sequence[_Probe] = ()
    """The topics to create: `probes`, and the topic of the ownership records if there is none."""

    @classmethod
    def from_documents(
        cls, documents: Sequence[TopologyDocument], existing: Collection[str], *, with_ownership: bool
    ) -> "_Names":
        if not documents:
            return cls(topics=[_EXAMPLE], probes=[_Probe(_EXAMPLE)], groups=[_EXAMPLE])
        request = snapshot_request(documents, {})
        managed = {sink.topic for document in documents for sink in document.sinks}
        names = [f"{prefix}{_EXAMPLE}" for prefix in request.prefixes]
        probes = [_Probe(name) for name in sorted({*names, *(managed - set(existing))})]
        own = [OWNERSHIP_TOPIC] if with_ownership else []
        return cls(
            topics=sorted({*request.names, *(probe.name for probe in probes), *own}),
            probes=probes,
            new=[*probes, *(_Probe(name) for name in own if name not in existing)],
            groups=(*request.groups, *own),
        )


def observe_permissions(
    connection: Connection,
    admin: GroupAdmin,
    documents: Sequence[TopologyDocument],
    purpose: Purpose,
    *,
    with_groups: bool,
    existing: Collection[str] = (),
    with_ownership: bool = False,
) -> PermissionFacts:
    """Return what the brokers permit; raises `ProblemsError` if they do not answer.

    Without `documents`, an example name is checked. `with_groups`: groups can be described. `existing` are
    the topics of the cluster. `with_ownership`: the stack has ownership records.
    """
    names, required = (
        _Names.from_documents(documents, existing, with_ownership=with_ownership),
        REQUIRED[purpose],
    )
    denied: dict[Right, Sequence[str]] = {}
    unknown: dict[Right, str] = {}
    answers = admin.answers(admin.request_topics(names.topics))
    denied[Right.DESCRIBE] = [name for name, answer in answers if _is_denied(answer)]
    if Right.CREATE in required:
        for right, (refused, reason) in _probe_changes(connection, names).items():
            denied[right] = refused
            unknown |= {right: reason} if reason else {}
    if with_groups:
        denied |= _denied_groups(admin, names.groups)
    else:
        unknown |= dict.fromkeys((Right.DESCRIBE_GROUPS, Right.READ_GROUPS), _NO_GROUPS)
    has_acls = any(document.application.acls is not None for document in documents)
    if has_acls:
        operations = admin.request_cluster_operations().result()
        denied |= {
            right: [] if operation in operations else ["cluster"]
            for right, operation in CLUSTER_RIGHTS.items()
        }
    if Right.WRITE_TRANSACTIONS in required:
        ids = [document.application.id for document in documents] or [_EXAMPLE]
        denied[Right.WRITE_TRANSACTIONS], reason = _check_transactions(connection, admin, ids)
        unknown |= {Right.WRITE_TRANSACTIONS: reason} if reason else {}
    return PermissionFacts(
        purpose=purpose,
        denied=denied,
        unknown=unknown,
        checked=_count_rights(names),
        is_example=not documents,
        has_acls=has_acls,
    )


_NO_GROUPS = "there has been no consumer group on this cluster yet"


def _count_rights(names: _Names) -> Mapping[Right, int]:
    probes, groups = len(names.probes), len(names.groups)
    return {
        **dict.fromkeys((Right.ALTER, Right.ALTER_CONFIGS), probes),
        Right.CREATE: len(names.new),
        **dict.fromkeys((Right.DESCRIBE_GROUPS, Right.READ_GROUPS, Right.WRITE_TRANSACTIONS), groups),
        Right.DESCRIBE: len(names.topics),
    }


def _is_denied(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.code() in (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
    )


def _probe_changes(connection: Connection, names: _Names) -> Mapping[Right, tuple[Sequence[str], str]]:
    """Return right → names that were denied, and why it is not known; requests are only validated."""
    admin = admin_client(connection)
    results = {
        Right.CREATE: request_new_topics(
            admin, [attrs.evolve(probe, partitions=1) for probe in names.new or names.probes], **_VALIDATED
        ),
        Right.ALTER: request_new_partitions(admin, names.probes, **_VALIDATED),
        Right.ALTER_CONFIGS: request_config_changes(admin, names.probes, **_VALIDATED),
    }
    return {right: _find_refused(futures) for right, futures in results.items()}


_VALIDATED: Mapping[str, Any] = {"validate_only": True, "timeout_seconds": TIMEOUT_SECONDS}


def _find_refused(futures: Mapping[str, "Future[Any]"]) -> tuple[Sequence[str], str]:
    answers = {name: _answer_of(future) for name, future in futures.items()}
    denied = [name for name, answer in answers.items() if _is_denied(answer)]
    late = [answer for answer in answers.values() if isinstance(answer, str)]
    return denied, late[0] if late else ""


def _answer_of(future: "Future[Any]") -> KafkaError | str | None:
    try:
        future.result(TIMEOUT_SECONDS + _GRACE_SECONDS)
    except KafkaException as error:
        reason: KafkaError = error.args[0]
        return f"the brokers did not answer ({reason.name()})" if reason.code() < 0 else reason
    except TimeoutError:
        return "the brokers did not answer"
    return None


def _denied_groups(admin: GroupAdmin, ids: Sequence[str]) -> Mapping[Right, Sequence[str]]:
    described = admin.groups(ids, with_operations=True)
    denied = [id_ for id_, answer in described.items() if _is_denied(answer)]
    unreadable = [
        id_
        for id_, answer in described.items()
        if not isinstance(answer, KafkaError)
        and answer.operations is not None
        and AclOperation.READ.value not in answer.operations
    ]
    return {Right.DESCRIBE_GROUPS: denied, Right.READ_GROUPS: [*denied, *unreadable]}


def _check_transactions(
    connection: Connection, admin: GroupAdmin, ids: Iterable[str]
) -> tuple[Sequence[str], str]:
    """Return the ids of applications without the permission, and why it is not known: only ACLs show it."""
    try:
        acls = [acl for binding in admin.acls(admin.request_acls(())) if (acl := acl_of(binding))]
    except ProblemsError as error:
        if "SECURITY_DISABLED" in (error.problems[0].found or ""):
            return (), ""
        return (), "only the ACLs show it, and this user may not list them"
    principal = _principal_of(connection)
    if principal is None:
        return (), "the name of this user in ACLs is not known"
    own = [acl for acl in acls if acl.principal in (principal, _ANYONE)]
    if not own:
        return (), "there is no ACL for this user, which may be a super user"
    return list(_without_permission(own, ids)), ""


def _without_permission(acls: Sequence[Acl], ids: Iterable[str]) -> Iterator[str]:
    for id_ in ids:
        needed = Permission(ResourceKind.TRANSACTIONAL_ID, f"{id_}-", Operation.WRITE, Pattern.PREFIXED)
        if not any(acl.permission.covers(needed) for acl in acls):
            yield f"{id_}-*"


def _principal_of(connection: Connection) -> str | None:
    """Return the principal in ACLs; the brokers' settings decide it for certificates and tokens."""
    if connection.uses_sasl:
        named = connection.mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
        return f"User:{connection.username}" if named else None
    return None if connection.certificate else "User:ANONYMOUS"
