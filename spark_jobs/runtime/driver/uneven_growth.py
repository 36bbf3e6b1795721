"""PURE. Source topics that are joined and grow one after the other (KIP-878)."""

from collections.abc import Sequence

import attrs

from infra.compiler import StreamsConfig
from infra.model.problems import Problem, ProblemCode


@attrs.define
class UnevenGrowth:
    """Bears different counts while autoscaling is on, for as long as expansions may fail.

    Nobody can expand two topics at the same moment, so a look in between is no reason to stop.
    """

    _patience_seconds: float
    _since: float | None = attrs.field(default=None, init=False)

    @classmethod
    def of(cls, config: StreamsConfig) -> "UnevenGrowth":
        return cls(config.autoscaling_timeout_ms / 1000 if config.autoscaling else 0.0)

    def is_borne(self, wrong: Sequence[Problem], now: float) -> bool:
        """Tell it the errors of each look, and when that was by a monotonic clock, in seconds."""
        if {problem.code for problem in wrong} != {ProblemCode.NOT_COPARTITIONED}:
            self._since = None
            return False
        self._since = now if self._since is None else self._since
        return now - self._since < self._patience_seconds
