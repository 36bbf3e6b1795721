"""`headwater agent`: internal topics expanded while their applications run."""

from infra.cli.lazy import Lazy, LazyGroup

_HELP = """Expand internal topics while applications run.

When source topics grow, internal topics follow, as KIP-878 promises. Read more: docs/agent.md.

\b
Examples:
  headwater agent run topologies/ --bootstrap-server localhost:9092 --http 127.0.0.1:9878
  headwater agent status
"""

agent = LazyGroup(
    "agent",
    lazy={
        "run": Lazy("infra.cli.agent_run", "run", "Expand internal topics when source topics grow."),
        "manifest": Lazy(
            "infra.cli.agent_manifest", "manifest_", "Write documents and what they compile to into one file."
        ),
        "status": Lazy(
            "infra.cli.agent_status", "status", "Show agents and applications as their endpoints tell."
        ),
        "history": Lazy("infra.cli.agent_history", "history", "Tell who expanded what, when and why."),
        "autoscaling": Lazy(
            "infra.cli.agent_autoscaling",
            "autoscaling",
            "Switch partition.autoscaling.enabled while agents run.",
        ),
    },
    help=_HELP,
)
