"""Every instruction in a fix is followed: its problem is gone, no other one is there, and no data is lost.

A new fix needs an `Advice` that follows it, or a reason below why that is not possible. The test that finds
it reads the source.
"""

from functools import cache

import pytest

from headwater.model.problems import Problem, ProblemCode
from tests.advice.counts import COUNTS
from tests.advice.evidence import EVIDENCE
from tests.advice.fix_texts import alternatives, literals
from tests.advice.forms import FORMS
from tests.advice.lifecycle import LIFECYCLE
from tests.advice.ownership import OWNERSHIP
from tests.advice.policies import POLICIES
from tests.advice.processors import PROCESSORS, TOPICS
from tests.advice.settings import SETTINGS
from tests.advice.trial import CHECKED, Advice, Fault, faults
from tests.advice.versions import VERSIONS

ADVICE = (
    *EVIDENCE,
    *FORMS,
    *LIFECYCLE,
    *COUNTS,
    *SETTINGS,
    *OWNERSHIP,
    *POLICIES,
    *PROCESSORS,
    *TOPICS,
    *VERSIONS,
)

EXPLAINS = (
    "A star at the end of a name stands for all names with this prefix",
    "Until then it stays as it is",
    "Its user needs permission AlterConfigs on the topic",
    "Later, its topics, offsets and state stay behind under the old id (`renamedFrom",
    "Later, its changelog topic stays behind",
    "Kafka Streams itself deletes the records that it has read, so -1 is correct",
    "Its count follows the source topics",
    "If the stack's state was restored",
    "Or, with brokers of Kafka 4.2",
    "On a development cluster this may be intended",
    "they are not needed",
    "The first one is revoked by",
    "Neither Headwater nor Pulumi moves replicas",
    "Kafka cannot remove partitions of source topics",
    "The others may still write to it",
    "It stays the same when partitions",
    "processors are added",
    "Nothing: the topic does not exist on this cluster",
    "No name that you can give keeps the name of this topic",
    "docs/versions.md explains the differences",
    "A group has a coordinator only while a replica of its partition of `__consumer_offsets` is in sync",
    "A policy `blastRadius: {removingSettings: 0}` refuses such changes",
    "It is not known whether a reshard of",
    "Keep it only if an agent must expand the application although its state is lost",
    "An application on Spark does not start without it until it has run with the new partition counts",
)
"""Parts of fixes that instruct nothing, or that belong to the instruction before or after them."""

_FINDS_OUT = "It says what a user has to find out. Nothing changes with the answer."
_REPROCESSES = "The state is rebuilt by the application, from its input: no plan shows whether that was done."
_UNSEEN = (
    "The client library cannot see members of such a group, so the warning stays until there is no group."
)
_IN_USE = "Kafka does not show which changelog topics members use: the warning stays while there are members."
_RUNNING = "A running application prints it, which has no plan: see `test_texts` and `test_processors`."
_OF_AN_AGENT = "An agent prints it, which has no plan: see `agent/test_decide_processors`."
_REPORT = "`headwater upgrade` prints it before anything is declared: a plan has the problem only afterwards."
NOT_FOLLOWED = {
    "If the application may create its topics itself, set the same in its code": "A plan does not read the "
    "code of an application.",
    "properties of the application, and start it under a new application id: a streams group keeps the "
    "settings of its topics": "A plan does not read the code of an application, and another id has other "
    "topics.",
    "Start the brokers that are stopped, and run again": "A simulated cluster has no brokers that stop: see "
    "`observe/test_several_brokers`.",
    "If the application was running before, find out who deleted the topic: its data is lost": _FINDS_OUT,
    "Find out who revoked it": _FINDS_OUT,
    "Find out who else writes to": _FINDS_OUT,
    "If you have not deleted the topic yourself, find out who writes to": _FINDS_OUT,
    "Check the plan": _FINDS_OUT,
    "Check whether data is already lost, and who changed the setting": _FINDS_OUT,
    "If the topic is empty": "The plan knows whether it is, unless the offsets cannot be read.",
    "kafka-get-offsets.sh --bootstrap-server BROKER --topic": "It only reads.",
    "Rebuild the state from the source topics": _REPROCESSES,
    "rebuild its content by reprocessing the source topics": _REPROCESSES,
    "rebuild the state by reprocessing the source topics": _REPROCESSES,
    "Otherwise rebuild the state by reprocessing the source topics": _REPROCESSES,
    "Then run `pulumi up` again": "Every check of this file does that.",
    "Write the copies to the same partitions before the application starts again": "Followed together "
    "with the "
    "sentence before it.",
    "Make sure that no instance is running: `kafka-streams-groups.sh --bootstrap-server BROKER --describe "
    "--group": _UNSEEN,
    "Kafka allows that only without members": "The command of the sentence before it.",
    "correct its name in the document": "The compiler reports a topic that is missing, with its own fix.",
    "Make sure that all instances run the topology of the document before the topic is deleted": _IN_USE,
    "Restore the topic while the application is stopped": _RUNNING,
    "Then start the application again": _RUNNING,
    "An agent and a running application read the policies when they start: start them again with the changed "
    "file": _RUNNING,
    "If another client of the application adds processors, start this one again afterwards": _RUNNING,
    "If it is stopped, start it: it continues": _RUNNING,
    "Start the application again: it continues with the number that its tasks have committed": _RUNNING,
    "If it does not start, `headwater plan` says how to restore the topic": _RUNNING,
    "If the application shall have one processor for each partition again, run `pulumi up`, which reads the "
    "record of the stack: the agent does not expand its changelog topics": _OF_AN_AGENT,
    "List its sink topics in `writes` of `acls`, and sources that are not in `observed` in `reads": "Only "
    "the user "
    "knows these topics, so the warning stays. It asks for a check of the lists.",
    "Choose a version from": _REPORT,
    "leave the document out": _REPORT,
    "Leave the document out: Headwater knows no later version": _REPORT,
    "Have the application print `Topology#describe()` with Kafka Streams": _REPORT,
    "and compare the texts": _REPORT,
    "To continue without the state, reset the application": _REPORT,
    "Reset the application: stop it, run `kafka-streams-application-reset.sh`, delete its local state, and "
    "start the "
    "new version": _REPORT,
    "Restart the application with the new version": _REPORT,
    "Then set `kafkaStreams` in the document and run `pulumi up": _REPORT,
    "Make sure that the source topic is compacted": _REPORT,
    "Run the tool with `--dry-run` first: it also deletes internal topics of applications whose ids begin "
    "with this id and a hyphen, unless `--internal-topics` names the topics to delete": _REPORT,
    "Delete the old changelog after the upgrade": _REPORT,
    "Create the topic before the upgrade": _REPORT,
    "set `kafkaStreams` in the document and run `pulumi up": _REPORT,
    "Otherwise create the topic before the upgrade": _REPORT,
    "Check that the topics of each group have the same number of partitions": _REPORT,
    "Change dashboards and alerts that name these nodes": "Names of nodes are not on the cluster.",
}
"""Instructions that no test can follow, with the reason."""

NOT_PLANNED = {
    "infra/headwater/pulumi": "About settings of a stack: the program stops before it makes a plan.",
    "infra/headwater/change": "About permissions and limits of brokers: `tests/change`.",
    "infra/headwater/operations": "About what brokers refuse: `tests/apply/test_validation.py`.",
    "infra/headwater/cli": "About files that the command does not find or replace.",
    "infra/headwater/compiler": "About one document, before a plan: `tests/compiler` and `tests/oracle` "
    "compare each refusal "
    "with the real library. Only `renumbering.py` is about topics that exist.",
    "infra/headwater/describe": "About a text that cannot be read.",
    "infra/headwater/doctor": "About connections and permissions: see `tests/doctor`.",
    "infra/headwater/kafka": "About connections and permissions: nothing is known of the cluster then.",
    "infra/headwater/spec": "About one document that cannot be read.",
    "infra/headwater/agent": "About the agent's own topics and group: `tests/agent`, `tests/coordination`.",
    "infra/headwater/command_line": "About a process that ends.",
    "infra/headwater/control": "About an endpoint that does not answer.",
    "spark_jobs/headwater_spark": "About an application that runs: `tests/runtime` moves and expands state.",
    **dict.fromkeys(
        (
            f"infra/headwater/planner/edits/{name}.py"
            for name in ("kept", "names", "observed", "partitioners", "recorded", "values", "verdicts")
        ),
        "About an edit, before a plan: `tests/edits/test_instructions.py` follows them.",
    ),
    "infra/headwater/planner/drift/orphans.py": "About topics that other applications may own.",
    "infra/headwater/planner/upgrade/data.py": "About local state and groups, which no plan changes.",
    "infra/headwater/planner/drift/running_topology.py": "About the application that runs, not about topics.",
}
"""Packages whose fixes are not about a plan, with the reason."""


@pytest.mark.parametrize("advice", ADVICE, ids=lambda advice: advice.says)
def test_a_followed_fix_solves_its_problem_and_no_other_one_follows(advice: Advice) -> None:
    advice.check()


@cache
def _faults() -> tuple[tuple[Advice, Fault], ...]:
    """Return each advice with the faults that it is for."""
    return tuple(
        (advice, fault)
        for advice in ADVICE
        for fault in CHECKED.get(advice) or advice.addressed(faults(advice.make()))
    )


def _followed() -> set[str]:
    """Return the instructions that are followed, as they are printed."""
    return {
        instruction
        for advice, fault in _faults()
        for instruction in alternatives(fault.fix)
        if instruction and any(part and part in instruction for part in alternatives(advice.says))
    }


def test_each_instruction_in_the_source_is_followed_or_has_a_reason() -> None:
    found = literals("infra/headwater/planner", "infra/headwater/compiler/renumbering.py")
    followed = _followed()
    unknown = {
        literal: file
        for literal, file in found.items()
        if literal not in EXPLAINS
        and literal not in NOT_FOLLOWED
        and file not in NOT_PLANNED
        and not any(literal in instruction for instruction in followed)
    }
    assert not unknown
    assert {*EXPLAINS, *NOT_FOLLOWED} <= found.keys(), {*EXPLAINS, *NOT_FOLLOWED} - found.keys()


def test_each_package_with_fixes_is_followed_or_has_a_reason() -> None:
    files = set(literals("infra", "spark_jobs").values())
    packages = {"/".join(file.split("/")[: 3 if file.startswith("infra/") else 2]) for file in files}
    assert packages == {
        "infra/headwater/planner",
        *(each for each in NOT_PLANNED if not each.endswith(".py")),
    }


def test_each_problem_of_a_plan_is_followed() -> None:
    """Codes of the rules: a rule without a follower would be found by its texts, too."""
    reported = {fault.code for _, fault in _faults() if isinstance(fault, Problem)}
    assert reported >= {
        ProblemCode.INTERNAL_TOPICS_ALREADY_SETUP,
        ProblemCode.MISSING_INTERNAL_TOPICS,
        ProblemCode.MISCONFIGURED_INTERNAL_TOPIC,
        ProblemCode.SOURCE_TOPICS_EXPANDED,
        ProblemCode.UNDER_PARTITIONED,
        ProblemCode.OVER_PARTITIONED,
        ProblemCode.EXPLICIT_COUNT_CHANGED,
        ProblemCode.UNSAFE_EXPANSION,
        ProblemCode.PROCESSOR_COUNT,
        ProblemCode.APPLICATION_REMOVED,
        ProblemCode.KAFKA_STREAMS_CHANGED,
        ProblemCode.TOPIC_REPLACED,
        ProblemCode.MANAGED_BY_ANOTHER_STACK,
        ProblemCode.GROUP_PROTOCOL_MISSING,
        ProblemCode.GROUP_ACTIVE,
        ProblemCode.WRONG_CLUSTER,
        ProblemCode.BLAST_RADIUS,
        ProblemCode.POLICY_VIOLATED,
        ProblemCode.REPLICATION_FACTOR,
        ProblemCode.UNAVAILABLE_PARTITIONS,
        ProblemCode.TIMEOUT,
        ProblemCode.RENUMBERED,
        ProblemCode.CONFLICTING_PARTITIONS,
        ProblemCode.MISSING_SINK_TOPIC,
        ProblemCode.MISSING_SOURCE_TOPIC,
        ProblemCode.NO_AUTHORIZER,
        ProblemCode.ACLS_INCOMPLETE,
    }
