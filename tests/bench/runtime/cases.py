"""The workloads that are compared, with their targets."""

from tests.bench.runtime.workloads import Keys, Workload

_OTHER_KEYS = (Keys.FEW, Keys.UNIQUE, Keys.SKEWED)
OPERATORS = (
    Workload(name="map", operator="map", rounds=3, of_plain=0.8, of_streams=1.0),
    Workload(name="map, exactly once", operator="map", exactly_once=True, share=0.2, has_plain_peer=False),
    Workload(name="count, one update per batch", operator="count", rounds=3, of_plain=0.7, of_streams=1.0),
    Workload(
        name="count, one update per record, exactly once",
        operator="count",
        every_update=True,
        exactly_once=True,
        share=0.15,
        rounds=3,
        has_plain_peer=False,
        of_streams=1.0,
    ),
)
KEYS = (
    *(
        Workload(name=f"per batch: {keys.value}", operator="count", keys=keys, share=0.25)
        for keys in _OTHER_KEYS
    ),
    *(
        Workload(
            name=f"per record, exactly once: {keys.value}",
            operator="count",
            keys=keys,
            every_update=True,
            exactly_once=True,
            share=0.1,
            has_plain_peer=False,
        )
        for keys in _OTHER_KEYS
    ),
)
AT_ONCE = tuple(
    Workload(name=f"map, {chains} in parallel", operator="map", chains=chains, share=0.2)
    for chains in (1, 4, 8)
)
_ONE_AND_A_HALF = 1.5
"""Times the latency of the prototype: 0.08 s for a map, 0.3 s for a count."""
LATENCY = (
    Workload(name="map", operator="map", max_latency=0.08 * _ONE_AND_A_HALF),
    Workload(
        name="count, one update per record, exactly once",
        operator="count",
        every_update=True,
        exactly_once=True,
        has_plain_peer=False,
        max_latency=0.3 * _ONE_AND_A_HALF,
    ),
    *(
        Workload(
            name=f"{subtopologies} maps in a row",
            operator="map",
            subtopologies=subtopologies,
            rounds=1,
            share=0.1,
        )
        for subtopologies in (4, 8)
    ),
)
