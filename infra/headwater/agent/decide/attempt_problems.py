"""The problem of each topic that an attempt could not expand: the answer of the brokers, and its fix."""

from collections.abc import Mapping

from headwater.agent.state import TopicResult
from headwater.model.acls import Operation, Permission, ResourceKind
from headwater.model.problems import Problem, ProblemCode

_WHY = (
    "Internal topics have too few partitions: do not produce to the new partitions of the source topics yet."
)
_THEN = "The agent retries. If it has given up, restart the leader or run `pulumi up`."
_DENIED = "TOPIC_AUTHORIZATION_FAILED"
_SHOW_QUOTAS = (
    "`kafka-configs.sh --bootstrap-server BROKER --describe --entity-type users` shows the quota "
    "`controller_mutation_rate` of users"
)
_REFUSALS: Mapping[str, str] = {
    "POLICY_VIOLATION": "Have the policy or the limit of the brokers changed.",
    "INVALID_REPLICATION_FACTOR": "Start the brokers that are stopped: too few answer for the replicas of "
    "new partitions.",
    "THROTTLING_QUOTA_EXCEEDED": f"Have the quota raised: {_SHOW_QUOTAS}.",
}
"""Kafka's errors with which brokers refuse new partitions → what to do."""
_NOT_CONFIRMED = "LEADERSHIP_NOT_CONFIRMED"
_WITHOUT_ANSWER = frozenset({"_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT"})
_LISTS_PERMISSIONS = (
    "`headwater acls FILES --self --for agent --principal User:NAME` prints all permissions that the "
    "agent needs."
)


def problem_of_result(application: str, result: TopicResult) -> Problem:
    """Return the problem of a topic that an attempt for `application` could not expand."""
    topic, partitions = result.topic, f"{result.partitions} partitions"
    if result.error == _DENIED:
        code, expected = ProblemCode.NOT_AUTHORIZED, f"permission {Operation.ALTER} on topic {topic}"
        summary = f"The Kafka brokers do not let the agent add partitions to topic {topic}."
        permission = Permission(ResourceKind.TOPIC, topic, Operation.ALTER)
        fix = f"Grant the agent's user {Operation.ALTER} on the topic: `{permission.command}`. "
        fix += _LISTS_PERMISSIONS
    elif result.error in _REFUSALS:
        code, expected, fix = ProblemCode.REFUSED_BY_BROKERS, partitions, _REFUSALS[result.error]
        summary = f"The Kafka brokers refuse to add partitions to topic {topic}."
    elif result.error == _NOT_CONFIRMED:
        code, expected = ProblemCode.REQUEST_NOT_ANSWERED, "an agent that leads"
        summary = f"The agent did not request partitions for topic {topic}: its leadership was not confirmed."
        fix = (
            "Check that the brokers answer, and whether `headwater agent status` says why the agent cannot "
            "take part in the election."
        )
    elif result.error in _WITHOUT_ANSWER:
        code, expected = ProblemCode.REQUEST_NOT_ANSWERED, partitions
        summary = f"The Kafka brokers did not answer the request for partitions of topic {topic}."
        fix = (
            "Check that the brokers and the controller answer, and whether a quota delays the request: "
            f"{_SHOW_QUOTAS}."
        )
    else:
        code, expected, fix = ProblemCode.REFUSED_BY_BROKERS, partitions, "Check the log of the controller."
        summary = f"The Kafka brokers did not add partitions to topic {topic}."
    return Problem(
        code=code,
        application=application,
        summary=summary,
        topic=topic,
        expected=expected,
        found=": ".join(word for word in (result.error, result.message) if word) or None,
        why=_WHY,
        fix=f"{fix} {_THEN}",
    )
