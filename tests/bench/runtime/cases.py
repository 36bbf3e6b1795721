"""The workloads that are compared, with their targets."""

from collections.abc import Mapping
from typing import get_args

from tests.bench.runtime.workloads import Keys, Operator, Workload

_OTHER_KEYS = (Keys.FEW, Keys.MILLION, Keys.UNIQUE, Keys.SKEWED)
_GOALS_OF_KEYS = {Keys.UNIQUE: 1.0, Keys.SKEWED: 1.0}
_SEVERAL, _LONGEST_CHAIN = 4, 8
OPERATORS = (
    Workload(name="map", operator="map", rounds=3, of_plain=1.1, of_streams=1.6),
    Workload(
        name="map, exactly once",
        operator="map",
        exactly_once=True,
        share=0.2,
        rounds=3,
        has_plain_peer=False,
        of_streams=1.6,
    ),
    Workload(name="count, one update per batch", operator="count", rounds=3, of_plain=0.8, of_streams=1.5),
    Workload(
        name="count, one update per record, exactly once",
        operator="count",
        every_update=True,
        exactly_once=True,
        share=0.15,
        rounds=3,
        has_plain_peer=False,
        of_streams=3.0,
    ),
)
KEYS = (
    *(
        Workload(name=f"count, one update per batch: {keys.value}", operator="count", keys=keys, share=0.25)
        for keys in _OTHER_KEYS
    ),
    *(
        Workload(
            name=f"count, one update per record, exactly once: {keys.value}",
            operator="count",
            keys=keys,
            every_update=True,
            exactly_once=True,
            share=0.1,
            has_plain_peer=False,
            of_streams=_GOALS_OF_KEYS.get(keys),
        )
        for keys in _OTHER_KEYS
    ),
)
AT_ONCE = tuple(
    Workload(
        name=f"map, {chains} in parallel",
        operator="map",
        chains=chains,
        share=0.2,
        of_plain=1.0 if chains <= _SEVERAL else None,
        of_streams=1.2 if chains <= _SEVERAL else None,
    )
    for chains in (1, _SEVERAL, 8)
)
_SHARES: Mapping[Operator, float] = {"sliding": 0.03, "hopping": 0.05, "stream-stream join": 0.05}
"""Operators with several updates or results per record have fewer records."""
_EACH_UPDATE: tuple[Operator, ...] = ("tumbling", "session")
_GOALS: Mapping[Operator, float] = {"tumbling": 2.0, "hopping": 2.0}
"""Rate as a multiple of the rate of Kafka Streams; 1.0 for the others."""
_FURTHER_OPERATORS: tuple[Operator, ...] = (
    "aggregate to JSON",
    "processor with a store",
    "stream-global table join",
)
STATEFUL = (
    *(
        Workload(
            name=operator,
            operator=operator,
            share=_SHARES.get(operator, 0.1),
            has_plain_peer=False,
            of_streams=_GOALS.get(operator, 1.0),
        )
        for operator in get_args(Operator)
        if operator not in {"map", "count", *_FURTHER_OPERATORS}
    ),
    *(
        Workload(
            name=f"{operator}, one update per record, exactly once",
            operator=operator,
            every_update=True,
            exactly_once=True,
            share=0.05,
            has_plain_peer=False,
            of_streams=_GOALS.get(operator, 1.0),
        )
        for operator in _EACH_UPDATE
    ),
)
FURTHER = tuple(
    Workload(name=operator, operator=operator, share=0.1, has_plain_peer=False, of_streams=1.0)
    for operator in _FURTHER_OPERATORS
)
LATENCY = (
    Workload(name="map", operator="map", of_streams=1.0, p99_of_streams=1.5),
    Workload(
        name="count, one update per record, exactly once",
        operator="count",
        every_update=True,
        exactly_once=True,
        has_plain_peer=False,
    ),
    *(
        Workload(
            name=f"{subtopologies} maps in a row",
            operator="map",
            subtopologies=subtopologies,
            rounds=1,
            share=0.1,
            of_streams=1.2 if subtopologies == _LONGEST_CHAIN else None,
        )
        for subtopologies in (4, _LONGEST_CHAIN)
    ),
)
