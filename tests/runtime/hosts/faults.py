"""Faults of hosts, and how they end."""

import random
import time
from collections.abc import Sequence
from enum import Enum

from tests.runtime.hosts.clock import shift_clock
from tests.runtime.hosts.cluster import SparkHosts
from tests.runtime.hosts.network import Host

_SHORT_SECONDS, _LONG_SECONDS = 5.0, 60.0
"""A host that is silent is lost after 45 s."""
_SLOW_SECONDS, _SLOW_KILOBITS = 15.0, 500


class Fault(Enum):
    KILL = "the processes of a host are killed"
    POWER_OFF = "a host is powered off, and started again with its disk"
    CUT = "a host is disconnected, not for long enough to be lost"
    LONG_CUT = "a host is disconnected until it is lost"
    FREEZE = "a host is stopped, not for long enough to be lost"
    LONG_FREEZE = "a host is stopped until it is lost"
    SLOW = "a host sends slowly"
    CLOCK = "the clock of a host is set forward by an hour"
    CLOCK_BACK = "the clock of a host is set back by four seconds"
    NO_ROUTE = "a host has no route to the broker"
    MORE = "a host is added"
    DRIVER_KILL = "the driver is killed, and another host starts one"
    DRIVER_CUT = "the driver's host is disconnected until another driver is running"
    DRIVER_FREEZE = "the driver's host is stopped until another driver is running"

    @property
    def is_of_driver(self) -> bool:
        return self in (Fault.DRIVER_KILL, Fault.DRIVER_CUT, Fault.DRIVER_FREEZE)

    @property
    def is_of_clock(self) -> bool:
        return self in (Fault.CLOCK, Fault.CLOCK_BACK)


_CLOCK_SECONDS = {Fault.CLOCK: 3_600, Fault.CLOCK_BACK: -4}
"""Workers do not trust what a driver with another time has sent, unless it is up to 5 s (`proof_seconds`)."""
_ADDED = 2
"""A series begins on two hosts and ends on four."""


def series(seed: int, number: int) -> Sequence[Fault]:
    """Return `number` faults, each kind equally often, in random order; two hosts are added."""
    draw = random.Random(seed)  # noqa: S311 - a series that is repeated
    kinds = [fault for fault in Fault if fault is not Fault.MORE]
    draw.shuffle(kinds)
    found: list[Fault] = [kinds[each % len(kinds)] for each in range(number - _ADDED)]
    draw.shuffle(found)
    for each in range(_ADDED):
        found.insert((each + 1) * number // (_ADDED + 1), Fault.MORE)
    return found


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
            time.sleep(_SLOW_SECONDS)
            host.speed_up()
        case Fault.CLOCK | Fault.CLOCK_BACK:
            shift_clock(host.files, _CLOCK_SECONDS[fault])
        case Fault.NO_ROUTE:
            host.block(cluster.broker_host.address)
            time.sleep(_SLOW_SECONDS)
            host.unblock(cluster.broker_host.address)
        case Fault.MORE:
            cluster.add_worker(f"worker{len(cluster.workers) + 1}")


def cause_of_driver(fault: Fault, host: Host) -> None:
    """Begin a fault of a driver's host."""
    match fault:
        case Fault.DRIVER_KILL:
            host.kill()
        case Fault.DRIVER_CUT:
            host.cut()
        case Fault.DRIVER_FREEZE:
            host.freeze()


def end_of_driver(fault: Fault, host: Host) -> None:
    """End what `cause_of_driver` has begun: the driver finds another one."""
    match fault:
        case Fault.DRIVER_CUT:
            host.reconnect()
        case Fault.DRIVER_FREEZE:
            host.unfreeze()
