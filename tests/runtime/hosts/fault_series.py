"""A series of faults of the hosts of an application, while it processes records."""

import logging
import os
import random
import time
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from headwater.toolchain.broker.readiness import until
from tests.runtime.hosts.cluster import START_SECONDS, Driver, SparkHosts
from tests.runtime.hosts.faults import Fault, cause, cause_of_driver, end_of_driver, series
from tests.runtime.hosts.start_parts import start_parts
from tests.runtime.spark.process_application import ProcessApplication

_log = logging.getLogger(__name__)
_END_SECONDS = 600.0
_BATCH_SECONDS = 2.0
"""Longer than most batches take."""


class FaultSeries:
    """Causes faults one after the other; as a context manager, it runs the drivers.

    Args:
        seed: Decides the order of the faults, their hosts and times.
        records: How many records are written before each fault.
    """

    def __init__(
        self, cluster: SparkHosts, application: ProcessApplication, seed: int, records: int, max_records: int
    ) -> None:
        self._cluster, self._application = cluster, application
        self._seed, self._records, self._max_records = seed, records, max_records
        self._draw = random.Random(seed)  # noqa: S311 - a series that is repeated
        self._hosts = [cluster.network.add(name) for name in ("driver", "other-driver")]
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.driver = self._start_driver()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def run(self, number: int) -> None:
        """Cause `number` faults."""
        application = self._application
        for count, fault in enumerate(series(self._seed, number), 1):
            before = application.fed
            application.feed(self._records)
            if fault.is_of_clock and not self._cluster.has_clocks:
                continue
            # Records are left: they are processed, or would be, while the fault lasts.
            application.await_counted(
                before + self._draw.randrange(self._records * 3 // 4), self.driver.process
            )
            # Not only just after a commit, which is when the number of records changes.
            time.sleep(self._draw.uniform(0.0, _BATCH_SECONDS))
            self._check_driver()
            host = self._draw.choice(self._cluster.workers)
            _log.info("fault %d of %d on %s: %s", count, number, host.name, fault.value)
            started, counted = time.monotonic(), application.counted()
            if fault.is_of_driver:
                self._replace_driver(fault)
            else:
                cause(fault, self._cluster, host)
            _log.info(
                "fault %d ended after %.1f s; %d offsets written meanwhile",
                count,
                time.monotonic() - started,
                application.counted() - counted,
            )

    def logs(self) -> str:
        """Return what all drivers have logged."""
        return "".join(map(self._cluster.log, self._hosts))

    def _start_driver(self) -> Driver:
        return self._stack.enter_context(
            self._cluster.driver(
                self._application,
                self._hosts[0],
                max_records=self._max_records,
                options=("--log-level", "debug"),  # names the queries whose batches are packed
            )
        )

    def _replace_driver(self, fault: Fault) -> None:
        """Cause a fault of the driver's host, start another driver, end the fault: the first driver ends."""
        lost, started, began = self.driver, time.monotonic(), time.time()
        self._hosts.reverse()
        cause_of_driver(fault, lost.host)
        self.driver = self._start_driver()
        assert until(self._is_running, START_SECONDS), self._cluster.log(self.driver.host)[-4000:]
        seconds, parts = time.monotonic() - started, start_parts(self._cluster.log(self.driver.host), began)
        _log.info("another driver is running after %.1f s: %s", seconds, parts)
        end_of_driver(fault, lost.host)
        assert until(lambda: lost.process.poll() is not None, _END_SECONDS), "the first driver continues"
        assert lost.process.returncode != os.EX_OK

    def _is_running(self) -> bool:
        self._check_driver()
        return bool(self.driver.status().get("runtime", {}).get("state") == "RUNNING")

    def _check_driver(self) -> None:
        assert self.driver.process.poll() is None, self._cluster.log(self.driver.host)[-4000:]
