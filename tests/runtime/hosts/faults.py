"""Faults of hosts, and how they end."""

import random
import time
from collections.abc import Sequence
from enum import Enum

from tests.runtime.hosts.cluster import SparkHosts
from tests.runtime.hosts.network import Host

_SHORT_SECONDS, _LONG_SECONDS = 5.0, 60.0
"""A host that is silent is lost after 45 s."""
_SLOW_KILOBITS = 500


class Fault(Enum):
    KILL = "the processes of a host are killed"
    POWER_OFF = "a host is powered off, and started again with its disk"
    CUT = "a host is disconnected, not for long enough to be lost"
    LONG_CUT = "a host is disconnected until it is lost"
    FREEZE = "a host is stopped, not for long enough to be lost"
    LONG_FREEZE = "a host is stopped until it is lost"
    SLOW = "a host sends slowly"
    MORE = "a host is added"

    @property
    def loses_executor(self) -> bool:
        return self in (Fault.KILL, Fault.POWER_OFF, Fault.LONG_CUT, Fault.LONG_FREEZE)


def series(seed: int, number: int) -> Sequence[Fault]:
    """Return `number` faults, each kind equally often, in random order; one host is added at most."""
    kinds = [fault for fault in Fault if fault is not Fault.MORE]
    found = [kinds[each % len(kinds)] for each in range(number - 1)]
    random.Random(seed).shuffle(found)  # noqa: S311 - a series that is repeated
    return [*found[: number // 2], Fault.MORE, *found[number // 2 :]]


def cause(fault: Fault, cluster: SparkHosts, host: Host) -> None:
    """Cause a fault of a worker's host, and end it; its worker runs again afterwards."""
    match fault:
        case Fault.KILL:
            host.kill()
            cluster.start_worker(host)
        case Fault.POWER_OFF:
            host.power_off()
            host.power_on()
            cluster.start_worker(host)
        case Fault.CUT | Fault.LONG_CUT:
            host.cut()
            time.sleep(_SHORT_SECONDS if fault is Fault.CUT else _LONG_SECONDS)
            host.reconnect()
        case Fault.FREEZE | Fault.LONG_FREEZE:
            host.freeze()
            time.sleep(_SHORT_SECONDS if fault is Fault.FREEZE else _LONG_SECONDS)
            host.unfreeze()
        case Fault.SLOW:
            host.slow_down(_SLOW_KILOBITS)
            time.sleep(_SHORT_SECONDS)
            host.speed_up()
        case Fault.MORE:
            cluster.add_worker(f"worker{len(cluster.workers) + 1}")
