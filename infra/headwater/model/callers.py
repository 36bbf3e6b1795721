"""Who compiles and plans. Rules build problem texts from it: what a user can do depends on the caller."""

import attrs


@attrs.frozen(kw_only=True)
class Caller:
    """What a program that compiles or plans knows, and what its user does next."""

    reads_cluster: bool = True
    """Whether partition counts are read from a cluster. If not, a topic without a count may exist."""
    knows_setup: bool = True
    """Whether a setup record says which topics Headwater set up. If not, all that exist count as ours."""
    is_running: bool = False
    """Whether this is the application itself: what happens to a topic now happens while it is in use."""
    reconciler: str = "`pulumi up`"
    """Who re-creates and reconfigures topics, to begin a sentence with."""
    describe_hint: str = ""
    """What else to do about a topic that is not found: it may be there, without permission to describe it."""


PLAN = Caller(describe_hint=" If it exists, grant the user permission to describe it.")
"""`pulumi up`, `pulumi preview` and `headwater plan`."""

OFFLINE = Caller(reads_cluster=False)
"""`headwater compile` without a cluster."""

DRIFT_WITHOUT_RECORD = Caller(knows_setup=False)
"""`headwater drift` without a stack: no setup record is known."""

AGENT = Caller(
    knows_setup=False,
    describe_hint=" If it exists, grant the agent's user permission to describe it.",
)
"""The agent: it adds partitions and creates no topics. It reads no setup record."""

APPLICATION = Caller(knows_setup=False, is_running=True, reconciler="The application")
"""`headwater run`: the application checks its own topics, when it starts and while it runs."""
