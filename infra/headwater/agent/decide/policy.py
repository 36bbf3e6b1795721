"""The settings of an agent that decisions depend on. Durations are milliseconds."""

from collections.abc import Iterable

import attrs

from headwater.compiler import StreamsConfig
from headwater.model.compiled import CompiledApplication
from headwater.model.policies import Policy


@attrs.frozen(kw_only=True)
class AgentPolicy:
    """`client_id` is written to the journal."""

    client_id: str
    poll_ms: int | None = None
    """Time from one read of the cluster to the next; None: the least `metadata.max.age.ms`."""
    settle_ms: int = 10_000
    """Time from the last success to the final follow-up (KIP-878: 10 seconds)."""
    lag_ms: int = 10_000
    """How long a lower count must be observed before it is used: brokers share metadata within seconds."""
    backoff_ms: int = 500
    """Pause before the first follow-up after a failure; doubled each time, up to `backoff_max_ms`."""
    backoff_max_ms: int = 30_000
    policies: tuple[Policy, ...] = ()
    """Policies that an expansion must not violate."""

    def interval_ms(self, applications: Iterable[CompiledApplication]) -> int:
        """Return the time from one read of the cluster to the next, if nothing requires an earlier one."""
        if self.poll_ms is not None:
            return self.poll_ms
        configs = (StreamsConfig.of(compiled.application) for compiled in applications)
        return min((config.metadata_max_age_ms for config in configs), default=_DEFAULT_POLL_MS)

    def backoff(self, attempts: int, jitter: float) -> int:
        """Return the pause after the `attempts`-th failure in a row: exponential, less up to a fifth."""
        doubled = self.backoff_ms * 2 ** min(attempts - 1, _MOST_DOUBLINGS)
        return int(min(doubled, self.backoff_max_ms) * (1 - _JITTER * jitter))


_DEFAULT_POLL_MS = 300_000
_MOST_DOUBLINGS = 20
_JITTER = 0.2
