"""What a running application costs while no records arrive, and how soon it processes the next one."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.bench.chain import Chain
from tests.bench.cpu_time import cpu_seconds, used
from tests.bench.figures import Figure

_SUBTOPOLOGIES = 5
_WARM_UP_SECONDS, _BROKER_SECONDS, _SECONDS = 15.0, 20.0, 60.0
_PAUSE_SECONDS = 2.5
_RECORDS = 15
_GOAL_PERCENT = 5.0
_PERCENT = "% of a core"


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    chain = Chain("idle", _SUBTOPOLOGIES, broker.bootstrap_servers)
    chain.create_topics()
    time.sleep(_WARM_UP_SECONDS)
    begin = cpu_seconds(broker.pid)
    time.sleep(_BROKER_SECONDS)
    alone = used(begin, cpu_seconds(broker.pid)) / _BROKER_SECONDS * 100
    yield Figure(what="CPU of the broker without applications", unit=_PERCENT, ours=alone)
    with chain.running(folder) as process, chain.records() as records:
        records.warm_up()
        time.sleep(_WARM_UP_SECONDS)
        before = cpu_seconds(process.pid), cpu_seconds(broker.pid)
        time.sleep(_SECONDS)
        after = cpu_seconds(process.pid), cpu_seconds(broker.pid)
        for program, start, end in zip(("driver", "broker"), before, after, strict=True):
            yield Figure(
                what=f"idle, {_SUBTOPOLOGIES} sub-topologies: CPU of the {program}",
                unit=_PERCENT,
                ours=used(start, end) / _SECONDS * 100,
                goal=_GOAL_PERCENT,
            )
        taken = []
        for number in range(_RECORDS):
            time.sleep(_PAUSE_SECONDS)
            taken.append(records.seconds(number))
        what = f"latency p50: {_SUBTOPOLOGIES} maps in a row, after {_PAUSE_SECONDS:g} s without records"
        yield Figure(what=what, unit="s", ours=statistics.median(taken))
