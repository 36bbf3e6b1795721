"""Checks of the groups of agents on a cluster: whether an agent runs where applications need one."""

from collections.abc import Iterator, Sequence

import attrs

from headwater.doctor.findings import Check, Finding, Section


@attrs.frozen(kw_only=True)
class AgentGroup:
    """A group of agents by its coordination topic; `members` are client ids with hosts, one is the `leader`.

    `error` says why the group could not be described.
    """

    topic: str
    members: Sequence[str] = ()
    leader: str | None = None
    error: str | None = None


@attrs.frozen(kw_only=True)
class AgentFacts:
    """The groups of agents, and the applications that declare `partition.autoscaling.enabled`."""

    groups: Sequence[AgentGroup]
    autoscaled: Sequence[str] = ()


def agent_findings(facts: AgentFacts) -> Iterator[Finding]:
    """Yield the findings about the groups of agents, and whether one expands applications that need it."""
    for group in facts.groups:
        yield _check_group(group)
    running = [group for group in facts.groups if group.members]
    check = Check(Section.AGENTS, "autoscaling")
    if facts.autoscaled and not running and not any(group.error for group in facts.groups):
        yield check.warning(
            f"This user sees no running agent, but autoscaling is enabled for {', '.join(facts.autoscaled)}.",
            why="When a source topic is expanded, internal topics are expanded only by the next `pulumi up`.",
            fix="Start an agent: `headwater agent run topologies/ --bootstrap-server HOST:PORT`. If an agent "
            "runs already, grant this user Describe on the topic and the group `headwater-agent-GROUP`.",
        )
    elif not facts.groups:
        yield check.ok("this user sees no agent on this cluster, and no application needs one")


def _check_group(group: AgentGroup) -> Finding:
    check = Check(Section.AGENTS, "agents")
    if group.error is not None:
        return check.unknown(
            f"The agents of {group.topic} are not known: {group.error}.",
            fix=f"Grant this user Describe on the group {group.topic}.",
        )
    if not group.members:
        return check.warning(
            f"No agent of {group.topic} runs; one has run before.",
            why="Internal topics are not expanded while applications run.",
            fix="Start the agent. If those who started it have ended it for good, they can delete the topic "
            f"{group.topic}, which has its history.",
        )
    members = ", ".join(group.members)
    if group.leader is None:
        return check.warning(
            f"The agents of {group.topic} have no leader: {members}.",
            why="Only the leader expands topics. An election takes seconds.",
            fix="Run again. If there is still no leader, read the agents' logs and `headwater agent status`.",
        )
    return check.ok(f"{group.topic}: leader {group.leader}" + _standby_text(len(group.members) - 1))


def _standby_text(count: int) -> str:
    return f", {count} standby agent{'' if count == 1 else 's'}" if count else ", no standby agent"
