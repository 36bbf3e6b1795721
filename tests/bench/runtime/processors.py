"""Add processors to an application under steady load: the longest pause of its results, and its throughput.

The throughput of a count with a number of processors is measured, too. At the end, the pause is compared with
those of Kafka Streams when a second instance joins. `HEADWATER_BENCH_KEYS` are the numbers of keys in its
state, separated by commas; `HEADWATER_BENCH_LOAD` is the number of records per second.
`HEADWATER_BENCH_STREAMS=0` omits Kafka Streams. `HEADWATER_BENCH_ROUNDS` is the number of rounds,
`HEADWATER_BENCH_RECORDS` and `HEADWATER_BENCH_SECONDS` are those of the throughput.
"""

import os
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median

import attrs
from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]  # public, but not exported explicitly
from pyspark.sql import SparkSession
from rich.console import Console

from headwater.control.logs import configure_log
from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from tests.bench.figures import Figure
from tests.bench.runtime import processor_throughput
from tests.bench.runtime.comparison import WIDTH, session
from tests.bench.runtime.restarts import restore_seconds
from tests.bench.runtime.second_instance import SecondInstance, WarmUp
from tests.bench.runtime.steady_load import Results, create, loaded

_KEYS = "100000,1000000"
_LOAD = 10_000
"""Records per second, about half of what two processors can do on two cores with little state."""
_WINDOW_SECONDS = 20.0
_SECONDS = 600.0
_ROUNDS = 3
_PROCESSORS, _MORE = 2, 4
_DOCUMENT = """
application:
  id: APP
  processors: PROCESSORS
  config: {processing.guarantee: exactly_once_v2, statestore.cache.max.bytes: 0}
topology:
- stream: {topic: in-APP, serdes: {key: string, value: string}}
- groupByKey:
- count: {materialized: counts}
- toStream:
- to: {topic: out-APP, serdes: {key: string, value: long}}
"""


def run(folder: Path, _: PulumiToolchain, broker: Broker) -> Iterator[Figure]:
    """Yield the figures for each number of keys; those of Kafka Streams, which may fail, come last."""
    configure_log(level="error")
    load = int(os.environ.get("HEADWATER_BENCH_LOAD", _LOAD))
    pauses: dict[int, float] = {}
    with session() as spark:
        for keys in map(int, os.environ.get("HEADWATER_BENCH_KEYS", _KEYS).split(",")):
            pauses[keys] = yield from _figures(spark, broker.bootstrap_servers, folder, keys, load)
        yield from processor_throughput.figures(spark, broker.bootstrap_servers, folder)
    if os.environ.get("HEADWATER_BENCH_STREAMS") == "0":
        return
    for keys, pause in pauses.items():
        for warm_up in WarmUp:
            instance = _second_instance(broker.bootstrap_servers, folder, keys, load, warm_up)
            yield from _next_to_streams(instance, keys, warm_up, pause)


def _second_instance(servers: str, folder: Path, keys: int, load: int, warm_up: WarmUp) -> SecondInstance:
    id_ = f"joined-{keys}-{warm_up.name.lower()}"
    return SecondInstance(
        servers=servers,
        folder=folder,
        id_=id_,
        keys=keys,
        partitions=_MORE,
        load=lambda: loaded(servers, f"in-{id_}", keys, load),
        results=Results(_MORE),
        seconds=_WINDOW_SECONDS,
    )


def _next_to_streams(instance: SecondInstance, keys: int, warm_up: WarmUp, ours: float) -> Iterator[Figure]:
    """Yield our pause next to that of Kafka Streams; print a message instead if Kafka Streams fails."""
    what = f"{keys:,} keys: longest pause; of Kafka Streams, if an instance is added {warm_up.value}"
    try:
        requested, done = instance.requested_and_done(warm_up)
    except Exception as error:  # noqa: BLE001 - the other figures must not be lost
        Console(stderr=True, width=WIDTH).log(f"no figure: {what}: {type(error).__name__}: {error}")
        return
    theirs = instance.results.longest_pause(requested, done + _WINDOW_SECONDS)
    yield Figure(what=what, unit="s", ours=ours, peer="Kafka Streams", theirs=theirs, goal=1)


@attrs.frozen
class _Expansion:
    """What one expansion of processors was measured at; times in seconds, rates in results per second."""

    pause: float
    pause_before: float
    rate: float
    rate_before: float
    duration: float
    restore: float


def _figures(
    spark: SparkSession, servers: str, folder: Path, keys: int, load: int
) -> Generator[Figure, None, float]:
    """Yield the figures for one number of keys; return the longest pause in seconds."""
    rounds = range(int(os.environ.get("HEADWATER_BENCH_ROUNDS", _ROUNDS)))
    measured = _medians(
        _expansion(spark, servers, folder, f"expanded-{keys}-{each}", keys=keys, load=load) for each in rounds
    )
    yield Figure(
        what=f"{keys:,} keys: longest pause of results while processors are added",
        unit="s",
        ours=measured.pause,
        peer="the longest pause before",
        theirs=measured.pause_before,
        goal=2,
    )
    yield Figure(
        what=f"{keys:,} keys: results until the new processors have taken over",
        unit="records/s",
        ours=measured.rate,
        peer="before",
        theirs=measured.rate_before,
        goal=0.7,
        is_rate=True,
    )
    yield Figure(
        what=f"{keys:,} keys: from the request to the new processors",
        unit="s",
        ours=measured.duration,
        peer="restoring the state from changelog topics",
        theirs=measured.restore,
        goal=2,
    )
    return measured.pause


def _medians(rounds: Iterable[_Expansion]) -> _Expansion:
    return _Expansion(*map(median, zip(*map(attrs.astuple, rounds), strict=True)))


def _expansion(
    spark: SparkSession, servers: str, folder: Path, id_: str, *, keys: int, load: int
) -> _Expansion:
    """Restore the state of an application, and expand it, under load."""
    results = Results(_MORE)
    admin = create(servers, id_, keys, _PROCESSORS)
    with _application(spark, servers, folder, id_) as application:
        application.wait_until_idle()
    with loaded(servers, f"in-{id_}", keys, load):
        restore = restore_seconds(
            lambda: _application(spark, servers, folder, id_),
            servers,
            id_,
            [(f"in-{id_}", each) for each in range(_PROCESSORS)],
            folder / "state" / id_,
        )
    with _application(spark, servers, folder, id_) as application:
        application.wait_until_idle()
        partitions = NewPartitions(f"in-{id_}", _MORE)
        admin.create_partitions([partitions])[f"in-{id_}"].result()
        with results.observed(servers, f"out-{id_}"), loaded(servers, f"in-{id_}", keys, load):
            time.sleep(2 * _WINDOW_SECONDS)  # it finds the added partitions
            requested = time.monotonic()
            application.expand_processors(_MORE)
            is_done = until(lambda: application.processors().processors == _MORE, _SECONDS)
            if not is_done:
                raise RuntimeError(f"no processors were added: {application.processors()}")
            done = time.monotonic()
            time.sleep(_WINDOW_SECONDS)
    before, after = requested - _WINDOW_SECONDS, done + _WINDOW_SECONDS
    return _Expansion(
        pause=results.longest_pause(requested, after),
        pause_before=results.longest_pause(before, requested),
        rate=results.rate(requested, done),
        rate_before=results.rate(before, requested),
        duration=done - requested,
        restore=restore,
    )


@contextmanager
def _application(spark: SparkSession, servers: str, folder: Path, id_: str) -> Iterator[StreamsApplication]:
    text = _DOCUMENT.replace("APP", id_).replace("PROCESSORS", str(_PROCESSORS))
    document = load_text(text, id_).documents[0]
    settings = RunSettings(
        connection=Connection(bootstrap_servers=(servers,)),
        checkpoint=str(folder / "checkpoint"),
        state_folder=folder / "state",
    )
    application = StreamsApplication(spark, document, check_runnable(document).programs, settings)
    with closing(application):
        application.start()
        yield application
