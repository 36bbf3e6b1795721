"""A cluster with an authorizer, its ACLs and the denials in its log."""

import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import attrs
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AclBindingFilter,
    AclPermissionType,
    AdminClient,
    NewPartitions,
    NewTopic,
    OffsetSpec,
)

from headwater.kafka import Connection
from headwater.kafka.acl_bindings import acl_binding, acl_of, filter_for
from headwater.model.acls import CLUSTER_NAME, Acl, Operation, Pattern, Permission, ResourceKind
from headwater.model.records import OWNERSHIP_TOPIC
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker import Broker, SaslUser
from headwater.toolchain.broker.launch import broker_tool_command
from headwater.toolchain.broker.readiness import until
from tests.groups import delete_group

_SECONDS = 90
_DENIAL = re.compile(
    r"Principal = (?P<principal>\S+) is Denied operation = (?P<operation>\w+) .*?"
    r"on resource = (?P<kind>\w+):LITERAL:(?P<name>\S+) for request"
)
_OPERATIONS = {operation.upper(): operation for operation in Operation} | {
    "DESCRIBE_CONFIGS": Operation.DESCRIBE_CONFIGS,
    "ALTER_CONFIGS": Operation.ALTER_CONFIGS,
}
_OF_EVERY_TEST = ("kafka-cluster", OWNERSHIP_TOPIC)
_KINDS = {"TransactionalId": ResourceKind.TRANSACTIONAL_ID}
_OPTIONS = {
    "--topic": ResourceKind.TOPIC,
    "--group": ResourceKind.GROUP,
    "--transactional-id": ResourceKind.TRANSACTIONAL_ID,
}


@attrs.frozen
class SecuredCluster:
    """A broker with an authorizer, and an admin client of a superuser."""

    broker: Broker
    _admin: AdminClient = attrs.field(init=False)

    @_admin.default
    def _connect(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})

    def connection(self, user: SaslUser) -> Connection:
        return Connection(
            bootstrap_servers=(self.broker.address("SASL_PLAINTEXT"),),
            protocol="SASL_PLAINTEXT",
            mechanism="PLAIN",
            username=user.name,
            password=user.password,
        )

    @property
    def superuser(self) -> Connection:
        return Connection(bootstrap_servers=(self.broker.bootstrap_servers,))

    def delete(self, topic: str) -> None:
        self._admin.delete_topics([topic])[topic].result()
        assert until(lambda: topic not in self.topics(), _SECONDS)

    def create(self, topics: Mapping[str, int], config: Mapping[str, str] | None = None) -> None:
        new = [NewTopic(name, count, 1, config=dict(config or {})) for name, count in topics.items()]
        for future in self._admin.create_topics(new).values():
            future.result()
        assert until(lambda: topics.keys() <= self.topics().keys(), _SECONDS)

    def expand(self, topic: str, partitions: int) -> None:
        self._admin.create_partitions([NewPartitions(topic, partitions)])[topic].result()

    def topics(self) -> dict[str, int]:
        found = self._admin.list_topics(timeout=_SECONDS).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def delete_group(self, id_: str) -> None:
        """Delete a group if it exists: a group id cannot be used with another protocol.

        Since Kafka Streams 4.2 an instance that is closed stays a member until its session times out.
        """
        assert until(lambda: delete_group(self._admin, id_), _SECONDS)

    def acls(self, principal: str | None = None) -> frozenset[Acl]:
        bindings = self._admin.describe_acls(filter_for(principal)).result()
        return frozenset(acl for binding in bindings if (acl := acl_of(binding)) is not None)

    def set_acls(self, principal: str, permissions: Iterable[Permission]) -> None:
        """Grant these permissions to a principal, and revoke all others."""
        expected = {Acl(principal, "*", permission) for permission in permissions}
        live = self.acls(principal)
        if new := expected - live:
            for future in self._admin.create_acls([acl_binding(acl) for acl in new]).values():
                future.result()
        if old := live - expected:
            for future in self._admin.delete_acls([_exact_filter(acl) for acl in old]).values():
                future.result()
        assert until(lambda: self.acls(principal) == expected, _SECONDS)

    def grant(self, fix: str, principal: str, distribution: KafkaDistribution | None = None) -> None:
        """Run the first command of a fix that grants something, as an administrator would.

        Without `distribution`, add the ACLs that the command would add: the tool takes a second.
        """
        found = re.search(r"kafka-acls\.sh --bootstrap-server BROKER --add [^`]+", fix)
        assert found is not None, fix
        command = found[0].replace("User:NAME", principal)
        if distribution is None:
            for future in self._admin.create_acls([acl_binding(acl) for acl in granted(command)]).values():
                future.result()
        else:
            words = shlex.split(command)[3:]
            subprocess.run(
                broker_tool_command(distribution, "acls", self.broker.bootstrap_servers, words), check=True
            )

    def produce(self, topic: str, count: int = 20) -> None:
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        for number in range(count):
            producer.produce(topic, key=f"key-{number % 7}".encode(), value=f"value-{number}".encode())
        assert producer.flush(_SECONDS) == 0

    def earliest_offsets(self, topic: str) -> int:
        """Return the sum of the earliest offsets of all partitions."""
        return self._offsets(topic, OffsetSpec.earliest())  # type: ignore[no-untyped-call]

    def latest_offsets(self, topic: str) -> int:
        """Return the sum of the latest offsets of all partitions."""
        return self._offsets(topic, OffsetSpec.latest())  # type: ignore[no-untyped-call]

    def denials(self, start: int, *names: str) -> set[Permission]:
        """Return the permissions that the authorizer denied, according to the log from byte `start`.

        With `names`, only those on the cluster, on records of ownership, and on resources whose names contain
        one of them: a client of an earlier test may still ask for its own.
        """
        text = self.broker.log.read_bytes()[start:].decode(errors="replace")
        return {
            Permission(
                _KINDS.get(match["kind"]) or ResourceKind(match["kind"]),
                match["name"],
                _OPERATIONS[match["operation"]],
            )
            for match in _DENIAL.finditer(text)
            if match["operation"] in _OPERATIONS
            and any(each in match["name"] for each in (names and (*names, *_OF_EVERY_TEST)) or ("",))
        }

    @property
    def log_length(self) -> int:
        return Path(self.broker.log).stat().st_size

    def _offsets(self, topic: str, spec: OffsetSpec) -> int:
        partitions = [TopicPartition(topic, number) for number in range(self.topics()[topic])]
        requested = self._admin.list_offsets(dict.fromkeys(partitions, spec))
        return sum(future.result().offset for future in requested.values())


def granted(script: str) -> Iterator[Acl]:
    """Yield the ACLs that the commands of a script grant, according to the options of `kafka-acls.sh`."""
    for line in script.splitlines():
        command, *words = shlex.split(line, comments=True) or [""]
        if command == "kafka-acls.sh":
            yield from _acls(words)


def _acls(words: Sequence[str]) -> Iterator[Acl]:
    values: dict[str, list[str]] = {}
    rest = iter(words)
    for option in rest:
        values.setdefault(option, []).extend([] if option in ("--add", "--cluster") else [next(rest)])
    assert "--add" in values
    pattern = Pattern.PREFIXED if "--resource-pattern-type" in values else Pattern.LITERAL
    resources = [(kind, name) for option, kind in _OPTIONS.items() for name in values.get(option, ())]
    for kind, name in resources or [(ResourceKind.CLUSTER, CLUSTER_NAME)]:
        for principal in values["--allow-principal"]:
            for host in values.get("--allow-host", ["*"]):
                for operation in values["--operation"]:
                    yield Acl(principal, host, Permission(kind, name, Operation(operation), pattern))


def _exact_filter(acl: Acl) -> AclBindingFilter:
    binding = acl_binding(acl)
    return AclBindingFilter(
        binding.restype,
        binding.name,
        binding.resource_pattern_type,
        binding.principal,
        binding.host,
        binding.operation,
        AclPermissionType.ALLOW,
    )
