"""Long series: reshards are killed, and brokers paused, at any moment; the judge is Kafka Streams."""

import json
import os
import random
import signal
from collections.abc import Callable, Mapping
from multiprocessing import get_context
from threading import Timer

import pytest

from headwater.kafka import Connection
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.spec import load_text
from headwater.toolchain.broker import Broker
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard.start import ReshardOptions, reshard_application
from tests.runtime.reshard.compared_applications import Compared, all_stores, batches, random_steps
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.oracle, pytest.mark.soak, pytest.mark.timeout(1800)]

_SERIES = int(os.environ.get("HEADWATER_FUZZ_EXAMPLES", "3"))
_FIRST = int(os.environ.get("HEADWATER_FUZZ_SEED", "1"))
_INTERRUPTED, _DONE = 3, 0
_ATTEMPTS = 40
_TEMPORARY = {
    ProblemCode.RESHARD_INCOMPLETE,
    ProblemCode.CLUSTER_UNREACHABLE,
    ProblemCode.REQUEST_NOT_ANSWERED,
    ProblemCode.REFUSED_BY_BROKERS,
    ProblemCode.TIMEOUT,
}


def _reshard(text: str, servers: str, counts: Mapping[str, int], processes: int) -> None:
    """Reshard in a process of its own; its exit code says whether it is complete."""
    (document,) = load_text(text, "app.yaml").documents
    options = ReshardOptions(partitions=counts, processes=processes)
    try:
        reshard_application(document, Connection(bootstrap_servers=(servers,)), options, report_no_progress)
    except ProblemsError as error:
        if {problem.code for problem in error.problems} - _TEMPORARY:
            raise
        os._exit(_INTERRUPTED)


def _counts(chance: random.Random, least: Mapping[str, int]) -> dict[str, int]:
    counts = {topic: least[topic] + chance.randrange(4) for topic in ("orders", "customers", "contracts")}
    return {**counts, "payments": counts["orders"]}


@pytest.mark.parametrize("seed", range(_FIRST, _FIRST + _SERIES))
def test_state_is_complete_whatever_is_killed(
    seed: int, own_broker: Callable[[], Broker], unique: Callable[[str], str]
) -> None:
    chance = random.Random(seed)  # noqa: S311 - the same series in each run
    before = _counts(chance, dict.fromkeys(("orders", "customers", "contracts"), 1))
    after = _counts(chance, before)
    if after == before:
        after = {topic: count + 1 for topic, count in before.items()}
    config = {"processing.guarantee": "exactly_once_v2"} if seed % 2 else {}
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with own_broker() as broker:
        broker.start()
        servers = broker.bootstrap_servers
        steps = all_stores() if seed % 3 == 0 else random_steps(seed)
        compared = Compared(servers, Topics(servers), unique, steps, before, after, config)
        series = batches(before, keys=60, size=400, seed=seed)
        first, second = next(series), next(series)
        compared.process(first)
        text = json.dumps(compared.json(compared.moved))
        counts = {f"{compared.moved}.{topic}": count for topic, count in after.items()}
        for attempt in range(_ATTEMPTS):
            process = context.Process(target=_reshard, args=(text, servers, counts, 1 + seed // 2 % 2))
            process.start()
            if chance.randrange(4) == 0:
                broker.pause()
                Timer(2.0, broker.resume).start()
            process.join(0.5 + chance.random() * (attempt + 1))
            if process.exitcode is None and attempt < _ATTEMPTS - 5:
                process.kill()
            process.join(120)
            assert process.exitcode in (_DONE, _INTERRUPTED, -signal.SIGKILL)
            if process.exitcode == _DONE:
                break
        assert process.exitcode == _DONE
        assert compared.entries(compared.moved) == compared.entries(compared.fresh)
        written = {name: compared.written(name) for name in compared.names}
        compared.process(second)
        moved, fresh = (compared.outputs(name, written[name]) for name in compared.names)
        assert moved == fresh
        assert compared.entries(compared.moved) == compared.entries(compared.fresh)
