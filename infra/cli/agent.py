"""`headwater agent`: internal topics expanded while their applications run."""

from infra.cli.lazy import Lazy, LazyGroup

agent = LazyGroup(
    "agent",
    lazy={
        "run": Lazy("infra.cli.agent_run", "run", "Expand internal topics when source topics grow."),
    },
    help="Internal topics follow their source topics while the applications run (KIP-878).",
)
