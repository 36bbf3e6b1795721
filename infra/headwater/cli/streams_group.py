"""Streams groups on the command line: `headwater status --group`, and the topology for `import --group`."""

from confluent_kafka import KafkaError

from headwater.cli.console import print_json, print_line
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.kafka.group_admin import GroupAdmin
from headwater.kafka.kafka_errors import is_denial, not_authorized, unexpected_error
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.streams_groups import StreamsGroup
from headwater.report.streams_group import streams_group_json, streams_group_text

_REQUEST_SECONDS = 15.0


def print_group(id_: str, cluster: NamedCluster, *, as_json: bool) -> None:
    """Print a streams group: state, epochs, sub-topologies with their topics, members with their tasks.

    Raises `ProblemsError` as `read_streams_group` does.
    """
    group = read_streams_group(id_, cluster.connection())
    if as_json:
        print_json(streams_group_json(group))
    else:
        print_line(streams_group_text(group))


def read_streams_group(id_: str, connected: Connection) -> StreamsGroup:
    """Return a streams group with its topology and the nodes that the brokers have.

    Raises:
        ProblemsError: ClusterUnreachable, RequestNotAnswered, AuthenticationRefused, NotAuthorized;
            TopologyNotKnown if there is no streams group of this name.
    """
    admin = GroupAdmin(connected, _REQUEST_SECONDS)
    admin.metadata(admin.open())  # fails within seconds, and names the reason, if no broker can be reached
    answer = admin.streams_groups([id_], with_nodes=True)[id_]
    if isinstance(answer, StreamsGroup):
        return answer
    code = answer.code()
    if code == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise ProblemsError([_hidden_topic(id_, answer)])
    if is_denial(answer):
        raise ProblemsError([not_authorized(answer, "see streams group", id_)])
    if code == KafkaError.UNSUPPORTED_VERSION:
        raise ProblemsError([_no_group(id_, "brokers without streams groups")])
    if code == KafkaError.GROUP_ID_NOT_FOUND:
        has_another = bool(admin.existing_groups([id_]))
        raise ProblemsError([_no_group(id_, f"{'a group of another protocol' if has_another else 'none'}")])
    raise ProblemsError([unexpected_error(answer, "read streams group", id_)])


def unusable_topology(id_: str, reason: str) -> Problem:
    """Return the problem that the brokers do not have the topology of a group; `reason` is a clause."""
    return Problem(
        code=ProblemCode.TOPOLOGY_NOT_KNOWN,
        summary=f"The brokers do not have the topology of {id_}.",
        application=id_,
        expected="the nodes of the topology (KIP-1331)",
        found=reason,
        why="Sub-topologies and topics alone do not show which counts follow which sources.",
        fix="Import the topology from the code of the application (`headwater import --jar`), or from the "
        "text that it prints (`headwater import --describe`).",
    )


def _hidden_topic(id_: str, error: KafkaError) -> Problem:
    return Problem(
        code=ProblemCode.NOT_AUTHORIZED,
        summary=f"The Kafka brokers do not let this user see all topics of streams group {id_}.",
        application=id_,
        expected="permission Describe on each topic of its topology",
        found=error.name(),
        why="The coordinator describes a streams group only to users who may see all of its topics.",
        fix="Grant the user Describe on the source topics and the internal topics of the application.",
    )


def _no_group(id_: str, found: str) -> Problem:
    return Problem(
        code=ProblemCode.TOPOLOGY_NOT_KNOWN,
        summary=f"The cluster has no streams group {id_}.",
        application=id_,
        expected="a group of the streams protocol (KIP-1071)",
        found=found,
        why="Only coordinators of streams groups know topologies. Such a group has the id of its "
        "application, and exists from the first start of the application until its offsets expire.",
        fix="Check the application id and the cluster. If the application uses the classic protocol, import "
        "it from its code (`headwater import --jar`), or from its text (`headwater import --describe`).",
    )
