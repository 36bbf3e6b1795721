"""The cluster and its groups: wrong cluster, running applications, no authorizer, timeouts, excess rights."""

import shlex
from collections.abc import Callable, Iterable, Iterator

from headwater.model.acls import ANY_NAME, Acl, LiveAcls, Operation, Permission, ResourceKind
from headwater.model.cluster import LiveGroup
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.model.topology import Protocol
from headwater.planner.acls.application import incomplete_needs
from headwater.planner.phrases import counted, delete_streams_group, listed
from headwater.planner.run import ActiveApplication, Run


def wrong_cluster(run: Run) -> Iterator[Problem]:
    """Yield a problem: on another cluster every recorded topic would seem to be lost."""
    found = run.snapshot.cluster_id
    if run.expected_cluster != found:
        yield Problem(
            code=ProblemCode.WRONG_CLUSTER,
            summary="The brokers belong to another cluster than this stack.",
            expected=f"cluster id {run.expected_cluster}",
            found=f"cluster id {found}",
            why="The setup records describe the other cluster: topics would be created, or reported as lost, "
            "on the wrong cluster.",
            fix="Correct the bootstrap servers, or select the stack of this cluster. If the cluster was "
            "replaced on purpose, set `headwater:clusterId` of the stack to its id.",
        )


def timed_out(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-698: `init(timeout)` throws TimeoutException."""
    limit = application.setup.timeout_ms
    if application.elapsed_ms > limit:
        yield application.problem(
            ProblemCode.TIMEOUT,
            f"Planning {application.id} took longer than `setup.timeout`.",
            expected=f"at most {limit:,} ms",
            found=f"{application.elapsed_ms:,} ms",
            why="The data from the cluster may be outdated, so nothing is changed.",
            fix="Check for a slow or overloaded broker, or raise `setup.timeout`.",
        )


def group_active(run: Run) -> Iterator[Problem]:
    """Yield a problem for each: a running application would use lost state, or create the topics again.

    Whether a group of the streams protocol has members is not visible if the user may not describe a topic of
    its topology. Deletion then waits until the group is deleted, which Kafka allows without members only.
    Re-initializing needs the group's offsets, so it continues with a warning. Without a coordinator, both
    wait.
    """
    for application in run.active:
        is_requested = application.is_manual and application.setup.reinitialize
        group = run.snapshot.groups.get(application.id)
        if is_requested and application.has_losses and group is not None and group.is_active:
            yield _found_group(group, "re-initialized", _unknown_group)
    for record in run.retired:
        group = run.snapshot.groups.get(record.application_id)
        if group is not None and group.is_active:
            yield _found_group(group, "retired", _undeleted_group)


def _found_group(group: LiveGroup, what: str, hidden: Callable[[LiveGroup, str], Problem]) -> Problem:
    """Return the problem; `hidden` creates it for a group whose members are not visible."""
    if not group.is_available:
        return _unavailable_group(group, what)
    return hidden(group, what) if group.members is None else _active_group(group, what)


def _active_group(group: LiveGroup, what: str) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what} while it is running.",
        application=group.id,
        expected="a consumer group without members",
        found=f"state {group.state}, {counted(group.members or 0, 'member')}",
        why=_WHY,
        fix="Stop all instances of the application and wait until its consumer group is empty. Then run "
        "`pulumi up` again.",
    )


def _unknown_group(group: LiveGroup, what: str) -> Problem:
    return _hidden_group(
        group,
        what,
        expected="a group without members",
        fix=f"Make sure that no instance is running: `kafka-streams-groups.sh --bootstrap-server BROKER "
        f"--describe --group {group.id} --members`.",
        severity=Severity.WARNING,
    )


def _undeleted_group(group: LiveGroup, what: str) -> Problem:
    return _hidden_group(
        group,
        what,
        expected="no group",
        fix="Stop all instances and delete the group. Kafka allows that only without members: "
        f"{delete_streams_group(group.id)}.",
    )


def _unavailable_group(group: LiveGroup, what: str) -> Problem:
    return _hidden_group(
        group,
        what,
        expected="a consumer group without members",
        found="no answer of the coordinator of the group",
        fix="Start the brokers that are stopped, and run again. A group has a coordinator only while a "
        "replica of its partition of `__consumer_offsets` is in sync.",
    )


def _hidden_group(
    group: LiveGroup,
    what: str,
    *,
    expected: str,
    fix: str,
    found: str = "a group of the streams protocol",
    severity: Severity = Severity.ERROR,
) -> Problem:
    return Problem(
        code=ProblemCode.GROUP_ACTIVE,
        summary=f"{group.id} is to be {what}, but Headwater cannot see whether it is running.",
        application=group.id,
        expected=expected,
        found=found,
        why=_WHY,
        fix=fix,
        severity=severity,
    )


_WHY = "A running application would continue with a part of its state, fail, or create the topics again."


def group_protocol(application: ActiveApplication) -> Iterator[Problem]:
    """KIP-1071: the brokers need `streams` among their protocols, and the feature `streams.version`."""
    if application.compiled.application.protocol is not Protocol.STREAMS:
        return
    snapshot = application.snapshot
    protocols, features = snapshot.group_protocols, snapshot.features
    if protocols is not None and Protocol.STREAMS.value not in protocols:
        yield _missing_authorizer(
            application,
            "`streams` in the brokers' group.coordinator.rebalance.protocols",
            ", ".join(sorted(protocols)),
        )
    elif features is not None and not features.get(_FEATURE):
        yield _missing_authorizer(application, f"the feature {_FEATURE} at level 1 or higher", "not enabled")


def _missing_authorizer(application: ActiveApplication, expected: str, found: str) -> Problem:
    return application.problem(
        ProblemCode.GROUP_PROTOCOL_MISSING,
        f"{application.id} uses the group protocol `streams`, which the brokers do not have.",
        expected=expected,
        found=found,
        why="The brokers reject the application's first heartbeat with UNSUPPORTED_VERSION: it does not "
        "start.",
        fix="Set `group.protocol: classic`. Or, with brokers of Kafka 4.2 or later, add `streams` to "
        "`group.coordinator.rebalance.protocols` and run `kafka-features.sh --bootstrap-server BROKER "
        f"upgrade --feature {_FEATURE}=1`.",
    )


_FEATURE = "streams.version"


def no_authorizer(run: Run) -> Iterator[Problem]:
    """Yield a warning only: the same documents may be used for a development cluster without ACLs."""
    declared = {s.id: acls.at for s in run.active if (acls := s.compiled.application.acls) is not None}
    live = run.snapshot.acls
    if not declared or live is None or live.has_authorizer:
        return
    yield Problem(
        code=ProblemCode.NO_AUTHORIZER,
        summary="The brokers have no authorizer: the declared ACLs are not created.",
        expected="brokers that check ACLs",
        found=f"an empty authorizer.class.name; ACLs are declared for {listed(declared)}",
        why="Every client that can connect to this cluster may read, write and delete everything.",
        fix="On a development cluster this may be intended. Otherwise set `authorizer.class.name` on all "
        "brokers and controllers (KRaft: org.apache.kafka.metadata.authorizer.StandardAuthorizer), set "
        "`super.users` to the administrators, and run `pulumi up` again.",
        location=next(iter(declared.values())),
        severity=Severity.WARNING,
    )


def acls_incomplete(application: ActiveApplication) -> Iterator[Problem]:
    """Yield warnings, only for applications that declare `acls`."""
    declared = application.compiled.application.acls
    if declared is not None:
        yield from incomplete_needs(application.compiled, declared)


_MOST_ACLS = 3


def excess_permissions(application: ActiveApplication) -> Iterator[Problem]:
    """Yield a warning, only for applications that declare `acls`: of others, no principal is known.

    Kafka Streams creates a missing internal topic if it may, and continues without its data.
    """
    declared, live = application.compiled.application.acls, application.snapshot.acls
    if declared is None or live is None or not application.is_manual:
        return
    names = [state.name for state in application.topics if state.is_internal]
    found = {
        acl.text: acl
        for acl in sorted((*live.allowed, *live.unlimited), key=lambda acl: acl.text)
        if acl.principal in declared.principals and _allows_creation(acl, names)
    }
    if not found:
        return
    principals = list(dict.fromkeys(acl.principal for acl in found.values()))
    shown = [
        *list(found)[:_MOST_ACLS],
        *([f"{len(found) - _MOST_ACLS} more"] if len(found) > _MOST_ACLS else []),
    ]
    command = _removal_command(next(iter(found.values())), live)
    yield application.problem(
        ProblemCode.EXCESS_PERMISSIONS,
        f"{listed(principals)} may create internal topics of {application.id}.",
        expected="no Create on the cluster, or on its internal topics",
        found=listed(shown),
        why="A lost topic must stop an application with manual setup. With this permission, Kafka Streams "
        "creates it again and continues without its data.",
        fix=f"{_grants_first(found.values(), live)}Revoke the listed ACLs. The first one is revoked by "
        f"`{command}`.",
        severity=Severity.WARNING,
    )


def _grants_first(acls: Iterable[Acl], live: LiveAcls) -> str:
    """Return what to do before an ACL for all operations is revoked: the application reads by it, too."""
    if live.unlimited.isdisjoint(acls):
        return ""
    return (
        "An ACL for All also lets the application read and write: first run `pulumi up`, which grants what "
        "the topology needs. "
    )


def _allows_creation(acl: Acl, names: list[str]) -> bool:
    """Return whether the ACL lets a client create one of these topics."""
    permission = acl.permission
    if permission.operation is not Operation.CREATE:
        return False
    if permission.kind is ResourceKind.CLUSTER:
        return bool(names)
    needed = (Permission(ResourceKind.TOPIC, name, Operation.CREATE) for name in names)
    return any(permission.covers(each) for each in needed)


def _removal_command(acl: Acl, live: LiveAcls) -> str:
    """Return the command that removes the ACL: Kafka removes an ACL for `All` only as a whole."""
    permission = acl.permission
    operations = [name for name, acls in (("Create", live.allowed), ("All", live.unlimited)) if acl in acls]
    resource = ["--topic", permission.name, "--resource-pattern-type", permission.pattern.lower()]
    words = [
        *("kafka-acls.sh", "--bootstrap-server", "BROKER", "--remove", "--allow-principal", acl.principal),
        *([] if acl.host == ANY_NAME else ["--allow-host", acl.host]),
        *(word for name in operations for word in ("--operation", name)),
        *(["--cluster"] if permission.kind is ResourceKind.CLUSTER else resource),
    ]
    return shlex.join(words)
