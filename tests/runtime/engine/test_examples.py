"""The documentation's examples, with data: what they promise is what comes out."""

import json
from pathlib import Path
from typing import Any

from headwater.spec import load_documents
from headwater_spark.engine.partitioners.hashing import default_partition
from headwater_spark.engine.serdes import plain_serde
from tests.runtime.replay import BatchReplay, runnable_programs

EXAMPLES = Path(__file__).parents[3] / "topology_schemas" / "examples"


def replay(name: str) -> BatchReplay:
    (document,) = load_documents([EXAMPLES / f"{name}.yaml"]).documents
    programs = runnable_programs(document, ())
    return BatchReplay(program.with_counts(dict.fromkeys(program.sinks.values(), 6)) for program in programs)


def pipe(run: BatchReplay, topic: str, key: str, value: Any, time: int) -> list[tuple[str, Any, Any, int]]:  # noqa: ANN401
    """What comes out of users' topics: (topic, key, value read as JSON, time)."""
    written = run.pipe(topic, key.encode(), None if value is None else json.dumps(value).encode(), time)
    users = {sink for program in run.programs for sink in program.sinks.values()}
    internal = {topic for program in run.programs for topic in program.sources}
    return [
        (record[0], record[2] and record[2].decode(), record[3] and json.loads(record[3]), record[4])
        for record in written
        if record[0] in users - internal
    ]


def test_orders_are_enriched_by_their_customer() -> None:
    run = replay("order-enrichment")
    assert pipe(run, "customers", "c1", {"name": "Ann", "country": "NL", "secret": 1}, 1) == []
    order = {"customer": "c1", "amount": 5, "test_order": False}
    (out,) = pipe(run, "orders", "o1", order, 2)
    assert out == ("orders-enriched", "c1", {**order, "name": "Ann", "country": "NL"}, 2)
    assert pipe(run, "orders", "o2", {**order, "test_order": True}, 3) == []
    assert pipe(run, "orders", "o3", {**order, "customer": "unknown"}, 4) == []


def test_revenue_is_emitted_when_an_hour_is_over() -> None:
    hour = 3_600_000
    run = replay("revenue-by-category")
    payments = [("fruit", 1.5, 10), ("milk", 2, 20), ("fruit", 3, hour - 1)]
    for number, (category, amount, time) in enumerate(payments):
        assert pipe(run, "payments", f"p{number}", {"category": category, "amount": amount}, time) == []
    late = run.pipe("payments", b"p", json.dumps({"category": "milk", "amount": 1}).encode(), 2 * hour)
    emitted = [record for record in late if record[0] == "revenue"]
    double = plain_serde("double")
    assert [(record[2], double.deserialize(record[3] or b""), record[4]) for record in emitted] == [
        (b"fruit" + bytes(8), 4.5, hour - 1),
        (b"milk" + bytes(8), 2.0, 20),
    ]
    assert [record[1] for record in emitted] == [
        default_partition(b"fruit", 6),
        default_partition(b"milk", 6),
    ]
