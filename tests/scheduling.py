"""Which worker of a test run gets which tests, and when: from the durations of earlier runs (`durations`).

Long ones first, Spark's tests in two sessions, the tests of all versions of Kafka Streams in one worker, the
tests of the secured cluster in one worker, and at each time some tests that wait and some that compute.
"""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # xdist ships no types

from tests.durations import ROOT, SPARK_SESSION, ModuleDuration, estimate_duration, load_durations

_SESSIONS = 2
"""A Spark session takes a gigabyte and ten seconds to start, so modules share this number of them."""
_LONG_SECONDS = 150.0
"""The tests of a longer module are assigned one by one, if they share nothing that takes long to set up.

Each worker that runs one of them sets up the fixtures of the module, mostly a broker or a JVM. The others
need not be divided, because the longest scopes run first.
"""
_SHARED_PART = 0.04
_QUICK_SECONDS = 3.0
"""Shorter scopes fill the gaps at the end of a run."""


@attrs.frozen(kw_only=True)
class Scope:
    """Tests that one worker runs one after the other."""

    seconds: float = 0.0
    computes: bool = False


@attrs.frozen
class Schedule:
    """The scopes of a test run; `known` is module → duration."""

    known: Mapping[str, ModuleDuration]
    root: Path = ROOT

    def scope_of(self, test: str) -> str:
        """Return the scope of a test, given its id."""
        path = test.partition("::")[0]
        duration = self.duration(path)
        if duration.shares == SPARK_SESSION:
            return f"{SPARK_SESSION} {self._sessions.get(path, 0)}"
        if duration.shares:
            return duration.shares
        return test if is_separable(duration) else path

    def scope(self, name: str) -> Scope:
        """Return how long a scope takes, and whether it computes or waits."""
        if name in self._shared:
            return self._shared[name]
        path, _, test = name.partition("::")
        duration = self.duration(path)
        seconds = duration.seconds / duration.tests if test else duration.seconds
        return Scope(seconds=seconds, computes=duration.computes)

    def duration(self, path: str) -> ModuleDuration:
        """Return the duration of a module: recorded, or estimated from its source."""
        if path not in self._durations:
            file = self.root / path
            self._durations[path] = estimate_duration(file.read_text() if file.exists() else "")
        return self._durations[path]

    @cached_property
    def _durations(self) -> dict[str, ModuleDuration]:
        return dict(self.known)

    @cached_property
    def _sessions(self) -> Mapping[str, int]:
        """Module → its Spark session: the longest modules first, each to the session with the least to do."""
        load = [0.0] * _SESSIONS
        found = {}
        shared = {path: each for path, each in self.known.items() if each.shares == SPARK_SESSION}
        for path, each in sorted(shared.items(), key=lambda item: (-item[1].seconds, item[0])):
            found[path] = load.index(min(load))
            load[found[path]] += each.seconds
        return found

    @cached_property
    def _shared(self) -> Mapping[str, Scope]:
        total: dict[str, float] = {f"{SPARK_SESSION} {number}": 0.0 for number in range(_SESSIONS)}
        for path, each in self.known.items():
            if each.shares:
                name = self.scope_of(path)
                total[name] = total.get(name, 0.0) + each.seconds
        return {name: Scope(seconds=seconds, computes=True) for name, seconds in total.items()}


def is_separable(duration: ModuleDuration) -> bool:
    """Return whether any worker may run any test of a module."""
    return (
        duration.tests > 1
        and not duration.shares
        and duration.seconds >= _LONG_SECONDS
        and duration.shared_setup_seconds < _SHARED_PART * duration.seconds
    )


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]  # its base is untyped
    """Assign whole modules, so that their fixtures are set up once, and single tests of long modules."""

    def __init__(self, config: Any, log: Any = None, schedule: Schedule | None = None) -> None:  # noqa: ANN401 - xdist
        super().__init__(config, log)
        self._schedule = schedule or Schedule(load_durations())

    def _split_scope(self, nodeid: str) -> str:
        return self._schedule.scope_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:  # noqa: ANN401 - xdist's WorkerController, untyped
        computes = _is_even(node)
        following = min(self.workqueue, key=lambda name: self._rank(name, computes=computes))
        self.workqueue.move_to_end(following, last=False)
        super()._assign_work_unit(node)

    def _rank(self, name: str, *, computes: bool) -> tuple[bool, bool, float, int]:
        scope = self._schedule.scope(name)
        is_quick = scope.seconds < _QUICK_SECONDS
        return is_quick, scope.computes is not computes, -scope.seconds, -len(self.workqueue[name])

    def _reschedule(self, node: Any) -> None:  # noqa: ANN401 - as above
        """Send the next scopes for the last test only: what waits behind a long test cannot be moved.

        A worker runs its last test when it knows the next one, so it gets tests until it has two. After a
        crash, the base class also queues the scopes that the worker had completed: without a test in them,
        another worker would wait forever.
        """
        if self._pending_of(self.assigned_work[node]) <= 1:
            for scope in [scope for scope, tests in self.workqueue.items() if all(tests.values())]:
                del self.workqueue[scope]
        while not node.shutting_down and self.workqueue and self._pending_of(self.assigned_work[node]) <= 1:
            self._assign_work_unit(node)
        if not self.workqueue:
            super()._reschedule(node)


def _is_even(node: Any) -> bool:  # noqa: ANN401 - as above
    """Return whether a worker begins with tests that compute: every second one."""
    return int(str(node.gateway.id).removeprefix("gw")) % 2 == 0
