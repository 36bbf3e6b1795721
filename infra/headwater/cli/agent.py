"""`headwater agent`: expand internal topics while their applications run."""

from headwater.cli.lazy import Lazy, LazyGroup

_HELP = """Expand internal topics while applications run.

When source topics are expanded, the agent expands the internal topics that depend on them (KIP-878).
Read more: docs/agent.md.

\b
Examples:
  headwater agent run topologies/ --bootstrap-server localhost:9092 --http 127.0.0.1:9878
  headwater agent status
"""

agent = LazyGroup(
    "agent",
    lazy={
        "run": Lazy(
            "headwater.cli.agent_run",
            "run",
            "Expand internal topics when source topics are expanded, until stopped (KIP-878).",
        ),
        "manifest": Lazy(
            "headwater.cli.agent_manifest",
            "manifest_",
            "Write documents and their partition counts to one JSON file.",
        ),
        "status": Lazy(
            "headwater.cli.agent_status", "status", "Show the status of agents and their applications."
        ),
        "history": Lazy(
            "headwater.cli.agent_history", "history", "Show past expansions: topics, agent, time and reason."
        ),
        "autoscaling": Lazy(
            "headwater.cli.agent_autoscaling",
            "autoscaling",
            "Switch partition.autoscaling.enabled while agents run.",
        ),
    },
    help=_HELP,
)
