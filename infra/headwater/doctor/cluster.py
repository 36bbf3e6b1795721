"""Checks of a cluster: connection, TLS, credentials, addresses, replicas, features and settings."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.doctor.broker_defaults import DeclaredSettings, broker_default_findings
from headwater.doctor.findings import Check, Finding, Section
from headwater.model.cluster import RegisteredBrokers, broker_phrase
from headwater.model.cluster_profiles import PLAIN, may_be_express, recognize_profile
from headwater.model.problems import Problem, ProblemCode

_FEW_DAYS = 21
_LISTENERS = (
    "Correct the brokers' `advertised.listeners`, or the firewall or DNS between this machine and them."
)


@attrs.frozen(kw_only=True)
class Login:
    """How Headwater connects. `is_local` says that all bootstrap servers are on this machine."""

    protocol: str
    mechanism: str | None
    username: str | None
    verifies: bool
    is_local: bool

    @property
    def uses_tls(self) -> bool:
        return self.protocol.endswith("SSL")


@attrs.frozen(kw_only=True)
class ReplicaFacts:
    """Counts of partitions, of all topics that the user may see.

    `under_replicated` have replicas that are not in sync. Of these, `below_minimum` have fewer in sync than
    writes require, and `at_minimum` exactly as many. `in_one_rack` have all replicas there, of several racks.
    `silent` is broker id → partitions with replicas on it, of brokers that do not answer.
    """

    leaderless: int = 0
    under_replicated: int = 0
    below_minimum: int = 0
    at_minimum: int = 0
    in_one_rack: int = 0
    silent: Mapping[int, int] = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ClusterFacts:
    """What was observed; None = not known.

    `unreachable` is address → reason, of bootstrap servers and of addresses that brokers advertise.
    `certificate_days` is the time until a broker's certificate expires. `settings` are settings of one
    broker.
    """

    login: Login
    servers: tuple[str, ...]
    problem: Problem | None = None
    cluster_id: str = ""
    brokers: Mapping[int, str] = attrs.field(factory=dict)
    unreachable: Mapping[str, str] = attrs.field(factory=dict)
    unchecked_addresses: int = 0
    """How many of the brokers' addresses were not connected to, because there are many."""
    certificate_days: int | None = None
    settings: Mapping[str, str] | None = None
    features: Mapping[str, int] | None = None
    expected_cluster_id: str | None = None
    has_streams_applications: bool = False
    replicas: ReplicaFacts = ReplicaFacts()
    registered: RegisteredBrokers | None = None
    cordoned: frozenset[int] = frozenset()
    """Brokers of which no log folder gets new replicas (KIP-1066)."""
    profiles: Mapping[str, str | None] = attrs.field(factory=dict)
    """Application → the cluster profile that its document declares."""
    topic_settings: Mapping[str, DeclaredSettings] = attrs.field(factory=dict)
    """Application → what its document declares about the settings of its internal topics."""


def cluster_findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield the findings about the connection; if it works, about the brokers, too."""
    yield from _check_connection(facts)
    yield _check_tls(facts)
    yield _check_credentials(facts)
    if facts.problem is not None:
        return
    yield _check_brokers(facts)
    yield from _check_registered(facts)
    yield _check_replicas(facts)
    yield from _check_placement(facts)
    yield _streams_groups(facts)
    yield _auto_creation(facts)
    yield from broker_default_findings(facts.settings, facts.topic_settings)
    yield from _check_profile(facts)


def _check_of(name: str) -> Check:
    return Check(Section.CLUSTER, name)


def _check_connection(facts: ClusterFacts) -> Iterator[Finding]:
    check = _check_of("connection")
    if facts.problem is None:
        yield check.ok(f"cluster {facts.cluster_id}, {_count_phrase(len(facts.brokers), 'broker')}")
        expected = facts.expected_cluster_id
        if expected is not None and expected != facts.cluster_id:
            yield _check_of("cluster-id").error(
                f"The stack is for cluster {expected}, but this is cluster {facts.cluster_id}.",
                why="Each run of the stack is refused (WrongCluster).",
                fix="Correct the bootstrap servers, or `headwater:clusterId` of the stack.",
            )
    elif _is_refusal(facts.problem):
        yield check.ok("brokers answer, but refuse the credentials")
    else:
        yield check.of_problem(facts.problem)
    dead = [server for server in facts.servers if server in facts.unreachable]
    if dead and (facts.problem is None or len(dead) < len(facts.servers)):
        yield _check_of("bootstrap-servers").warning(
            f"{len(dead)} of {_count_phrase(len(facts.servers), 'bootstrap server')} cannot be reached: "
            + _reasons_of(facts, dead),
            why="If the others are down, no connection is possible.",
            fix="Correct or remove the addresses.",
        )


def _is_refusal(problem: Problem) -> bool:
    return problem.code is ProblemCode.AUTHENTICATION_REFUSED


def _reasons_of(facts: ClusterFacts, addresses: list[str]) -> str:
    return ", ".join(f"{address} ({facts.unreachable[address]})" for address in addresses)


def _check_tls(facts: ClusterFacts) -> Finding:
    check, login = _check_of("tls"), facts.login
    if not login.uses_tls:
        if login.is_local:
            return check.ok("not used, on this machine")
        return check.warning(
            f"The connection is not encrypted ({login.protocol}).",
            why="Others in the network can read and change what is sent"
            + (", also the password." if login.mechanism == "PLAIN" else "."),
            fix="Use a listener with TLS: security protocol SASL_SSL or SSL.",
        )
    if not login.verifies:
        return check.warning(
            "The certificates of the brokers are not verified.",
            why="Another server can pretend to be the cluster and read the credentials.",
            fix="Set the CA certificate (HEADWATER_CA_CERT), and do not skip the verification.",
        )
    if facts.problem is not None and not _is_refusal(facts.problem):
        return check.unknown("Not checked without a connection.", fix="Fix the connection first.")
    days = facts.certificate_days
    if days is not None and days < _FEW_DAYS:
        return check.warning(
            f"A broker's certificate expires in {_count_phrase(days, 'day')}.",
            why="Then no client can connect any more.",
            fix="Renew the certificates of the brokers.",
        )
    return check.ok(
        "verified" + (f", valid for {_count_phrase(days, 'more day')}" if days is not None else "")
    )


def _check_credentials(facts: ClusterFacts) -> Finding:
    check, login = _check_of("credentials"), facts.login
    if facts.problem is not None:
        if _is_refusal(facts.problem):
            return check.of_problem(facts.problem)
        return check.unknown("Not checked without a connection.", fix="Fix the connection first.")
    if login.mechanism is None:
        return check.ok("no login is required")
    return check.ok(f"accepted: {login.mechanism}" + (f", user {login.username}" if login.username else ""))


def _check_brokers(facts: ClusterFacts) -> Finding:
    check = _check_of("brokers")
    dead = [address for address in facts.brokers.values() if address in facts.unreachable]
    if not dead:
        if more := facts.unchecked_addresses:
            checked = len(facts.brokers) - more
            return check.ok(f"{checked} advertised addresses can be reached; {more} more were not tried")
        return check.ok("all advertised addresses can be reached")
    return check.error(
        f"{len(dead)} of {_count_phrase(len(facts.brokers), 'broker')} cannot be reached at the addresses "
        f"that they advertise: {_reasons_of(facts, dead)}.",
        why="Clients connect to these addresses after the first request. Requests for their partitions hang.",
        fix=_LISTENERS,
    )


def _check_replicas(facts: ClusterFacts) -> Finding:
    check, replicas = _check_of("replicas"), facts.replicas
    if replicas.leaderless:
        return check.error(
            f"{_partition_phrase(replicas.leaderless)} no leader{_silence_phrase(replicas)}.",
            why="Clients can neither read nor write these partitions.",
            fix="Start the brokers that have their replicas: `kafka-topics.sh --bootstrap-server BROKER "
            "--describe --unavailable-partitions` shows them.",
        )
    if replicas.below_minimum:
        return check.error(
            f"{_partition_phrase(replicas.below_minimum)} fewer replicas in sync than writes require"
            f"{_silence_phrase(replicas)}.",
            why="Every write with acks=all to these partitions fails (NOT_ENOUGH_REPLICAS).",
            fix="Start the brokers that are stopped: `kafka-topics.sh --bootstrap-server BROKER --describe "
            "--under-min-isr-partitions` shows the partitions.",
        )
    if replicas.under_replicated:
        last = f", {replicas.at_minimum} of them no more than writes require" if replicas.at_minimum else ""
        return check.warning(
            f"{_partition_phrase(replicas.under_replicated)} replicas that are not in sync{last}"
            f"{_silence_phrase(replicas)}.",
            why="If more brokers stop, writes with acks=all fail, or data is lost.",
            fix="Start the brokers that are stopped, or wait until their replicas are in sync: "
            "`kafka-topics.sh "
            "--bootstrap-server BROKER --describe --under-replicated-partitions` shows them.",
        )
    return check.ok("all are in sync")


def _partition_phrase(count: int) -> str:
    return f"{_count_phrase(count, 'partition')} {'has' if count == 1 else 'have'}"


def _silence_phrase(replicas: ReplicaFacts) -> str:
    if not replicas.silent:
        return ""
    return f" ({broker_phrase(replicas.silent)} {'does' if len(replicas.silent) == 1 else 'do'} not answer)"


def _check_registered(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about brokers that are registered and get no new replicas: stopped or cordoned ones."""
    known = facts.registered.by_id if facts.registered is not None else {}
    stopped = [id_ for id_, broker in known.items() if broker.is_fenced]
    if stopped:
        yield _check_of("stopped-brokers").warning(
            f"{len(stopped)} of {_count_phrase(len(known), 'registered broker')} "
            f"{'is' if len(stopped) == 1 else 'are'} stopped or starting: {broker_phrase(stopped)}.",
            why="Topics that are created meanwhile have replicas on them that are missing until they start.",
            fix="Start them. If a broker will not start again, move its replicas to other brokers "
            "(`kafka-reassign-partitions.sh`), then remove it: `kafka-cluster.sh unregister "
            "--bootstrap-server BROKER --id ID`.",
        )
    if not facts.cordoned:
        return
    check = _check_of("cordoned-brokers")
    if facts.cordoned >= facts.brokers.keys():
        yield check.error(
            "All brokers are cordoned.",
            why="Kafka creates no topic and adds no partition: each request is refused.",
            fix="Remove `cordoned.log.dirs` from brokers: `kafka-configs.sh --bootstrap-server BROKER "
            "--alter --entity-type brokers --entity-name ID --delete-config cordoned.log.dirs`.",
        )
    else:
        yield check.ok(f"no replicas of new topics on {broker_phrase(facts.cordoned)}")


def _check_placement(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield findings about replicas that are on the wrong brokers; waiting does not help."""
    brokers, replicas = facts.registered, facts.replicas
    gone = [id_ for id_ in replicas.silent if brokers is not None and brokers.is_unregistered(id_)]
    if gone:
        number = max(replicas.silent[id_] for id_ in gone)
        least = "" if len(gone) == 1 else "At least "  # a partition may have replicas on several of them
        yield _check_of("replica-placement").warning(
            f"{least}{_partition_phrase(number)} replicas on {broker_phrase(gone)}, which "
            f"{'is' if len(gone) == 1 else 'are'} not registered.",
            why="These replicas are missing for good: the data survives the loss of fewer brokers.",
            fix="Move them to other brokers (`kafka-reassign-partitions.sh`), or start the brokers again.",
        )
    if replicas.in_one_rack:
        yield _check_of("racks").warning(
            f"{_partition_phrase(replicas.in_one_rack)} all replicas in one rack, of "
            f"{len(brokers.racks) if brokers else 0}.",
            why="If this rack fails, these partitions cannot be read or written, and their data may be lost.",
            fix="Move replicas to brokers of other racks: `kafka-reassign-partitions.sh --bootstrap-server "
            "BROKER --generate --broker-list IDS --topics-to-move-json-file FILE` proposes a plan that "
            "spreads them, `--execute` starts it.",
        )


def _streams_groups(facts: ClusterFacts) -> Finding:
    check = _check_of("streams-groups")
    protocols = (facts.settings or {}).get("group.coordinator.rebalance.protocols")
    if protocols is None or facts.features is None:
        return check.unknown(
            "It is not known whether the brokers have streams groups (KIP-1071).",
            fix="Grant this user DescribeConfigs on the cluster. Only applications with "
            "`group.protocol: streams` need streams groups.",
        )
    missing = []
    if "streams" not in [word.strip() for word in protocols.split(",")]:
        missing.append("`streams` is not in group.coordinator.rebalance.protocols")
    if not facts.features.get("streams.version"):
        missing.append("the feature streams.version is not enabled")
    if not missing:
        return check.ok("streams groups (KIP-1071) are enabled")
    if not facts.has_streams_applications:
        return check.ok("no streams groups (KIP-1071), and no application that needs them")
    return check.error(
        f"Applications use `group.protocol: streams`, but {' and '.join(missing)}.",
        why="The brokers reject these applications: they do not start.",
        fix="Set `group.protocol: classic`. Or, with brokers of Kafka 4.2 or later, add `streams` to "
        "`group.coordinator.rebalance.protocols` and run `kafka-features.sh --bootstrap-server BROKER "
        "upgrade --feature streams.version=1`.",
    )


def _auto_creation(facts: ClusterFacts) -> Finding:
    check = _check_of("auto-creation")
    setting = (facts.settings or {}).get("auto.create.topics.enable")
    if setting is None:
        return check.unknown(
            "It is not known whether brokers create topics automatically.",
            fix="Grant this user DescribeConfigs on the cluster.",
        )
    if setting.lower() == "false":
        return check.ok("brokers do not create topics automatically")
    return check.warning(
        "The brokers create topics automatically (auto.create.topics.enable=true).",
        why="A client that starts early creates a source or sink topic with the default partition count. "
        "Internal topics then follow this count.",
        fix="Set auto.create.topics.enable=false on all brokers.",
    )


def _check_profile(facts: ClusterFacts) -> Iterator[Finding]:
    """Compare the profile that the cluster shows with the declared ones; Apache Kafka needs none."""
    check, hosts = (
        _check_of("cluster-profile"),
        [address.rpartition(":")[0] for address in facts.brokers.values()],
    )
    recognized = recognize_profile(facts.cluster_id, hosts)
    if recognized is not None:
        fitting = (recognized.name, PLAIN.name)
        others = sorted(id_ for id_, name in facts.profiles.items() if name not in fitting)
        if not others:
            yield check.ok(f"{recognized.title} (profile {recognized.name})")
            return
        yield check.warning(
            f"The cluster is {recognized.title}, but {', '.join(others)} "
            f"declare{'s' if len(others) == 1 else ''} another profile, or none.",
            why="Plans recognize the cluster. `headwater compile`, `headwater validate` and `headwater run` "
            "only know what a document declares.",
            fix=f"Declare `clusterProfile: {recognized.name}` below `application`.",
        )
    elif may_be_express(hosts) and None in facts.profiles.values():
        yield check.warning(
            "The cluster is Amazon MSK. Its addresses do not show whether its brokers are Express brokers.",
            why="Express brokers refuse settings that Kafka Streams sends, such as segment.bytes.",
            fix="If they are, declare `clusterProfile: msk-express` below `application`.",
        )


def _count_phrase(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
