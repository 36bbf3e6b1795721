"""The library reads the ids of internal topics that `pulumi up` has recorded on the cluster."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Producer

from headwater.kafka.ownership import encode_record, key_of
from headwater.model.records import OWNERSHIP_TOPIC, RECORD_TOPIC_SETTINGS, OwnershipRecord, StackIdentity
from headwater.toolchain.broker import Broker, Settings
from tests.quick_java import QUICK_PROGRAM
from tests.streams_library.application import TestedApplication
from tests.streams_library.applications import NEWEST, class_path, jvm

pytestmark = pytest.mark.oracle

_ID, _OTHER = "v+DxyQfKTUq0sD9lQ8jG/w", "aBDxyQfKTUq0sD9lQ8jGZw"
_PRINTED = "v-DxyQfKTUq0sD9lQ8jG_w"  # as Java does
_RECORD = OwnershipRecord(
    application_id="shop", stack=StackIdentity("s1", "org/shop/prod"), topics={"shop-c": _ID, "shop-r": ""}
)
_KEY = key_of("s1", "shop")
_VALUE = encode_record(_RECORD)
_KNOWN, _NONE = f"{{shop-c=[{_PRINTED}]}}", "{}"


def _changed(**values: object) -> bytes:
    return encode_record(attrs.evolve(_RECORD, **values))  # type: ignore[arg-type]  # any field


_CASES: Sequence[tuple[str, Sequence[tuple[bytes, bytes]], str]] = (
    ("recorded", [(_KEY, _VALUE)], _KNOWN),
    ("the latest counts", [(_KEY, _changed(topics={"shop-c": _OTHER})), (_KEY, _VALUE)], _KNOWN),
    ("deleted", [(_KEY, _VALUE), (_KEY, b"deleted")], _NONE),
    ("another application", [(key_of("s1", "a-shop"), _VALUE), (key_of("s1", "shop2"), _VALUE)], _NONE),
    (
        "two stacks",
        [
            (_KEY, _VALUE),
            (
                key_of("s2", "shop"),
                _changed(stack=StackIdentity("s2", "org/b/prod"), topics={"shop-c": _OTHER}),
            ),
        ],
        f"{{shop-c=[{_OTHER}, {_PRINTED}]}}",
    ),
    ("not finished", [(_KEY, _changed(is_finished=False))], _NONE),
    ("retired", [(_KEY, _changed(is_retired=True))], _NONE),
    ("below another key", [(key_of("s2", "shop"), _VALUE)], _NONE),
    ("later format", [(_KEY, _VALUE.replace(b'"format":1', b'"format":2'))], _NONE),
    ("no object", [(_KEY, b"[1, 2]"), (key_of("s3", "shop"), b"null")], _NONE),
    ("cut off", [(_KEY, _VALUE[:-1])], _NONE),
    ("text after the end", [(_KEY, _VALUE + b"{}")], _NONE),
    ("nested deeply", [(_KEY, b"[" * 100_000)], _NONE),
    ("no id", [(_KEY, _VALUE.replace(_ID.encode(), b"id"))], _NONE),
    ("no text", [(_KEY, _VALUE.replace(f'"{_ID}"'.encode(), b"7"))], _NONE),
    ("other bytes", [(_KEY, _VALUE.replace(b"prod", b"\xff\xfe")), (b"\xff/shop", _VALUE)], _NONE),
    ("too large", [(_KEY, _VALUE + b" " * 4 * 1024 * 1024)], _NONE),
    ("escapes", [(_KEY, _VALUE.replace(b"shop-c", b"\\u0073hop\\u002dc"))], _KNOWN),
    (
        "many keys",
        [(_KEY, _VALUE), *((key_of(f"x{number}", "shop"), b"{}") for number in range(300))],
        _KNOWN,
    ),
)


def test_records_are_read_within_bounds_and_hostile_ones_are_ignored(tmp_path: Path) -> None:
    files = []
    for number, (_, records, _) in enumerate(_CASES):
        files.append(tmp_path / str(number))
        files[-1].write_bytes(b"".join(key + b"\t" + value + b"\n" for key, value in records))
    done = subprocess.run(
        [
            "java",
            *QUICK_PROGRAM,
            "-Xmx128m",
            "-cp",
            class_path(NEWEST),
            "io.headwater.streams.RecordedIds",
            *files,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    found = dict(zip([name for name, _, _ in _CASES], done.stdout.splitlines(), strict=True))
    assert found == {name: expected for name, _, expected in _CASES}


@pytest.mark.broker
def test_topics_that_were_re_created_while_all_instances_were_stopped(
    own_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    """Manual: an error that names them, and no record is processed. Automatic: a warning."""
    quickly = Settings(overrides={"group.min.session.timeout.ms": "1000"})
    with own_broker(quickly) as broker, jvm(NEWEST, tmp_path) as java:
        shop = TestedApplication("shop", broker.bootstrap_servers)
        shop.create(shop.source, 2)
        shop.create(shop.sink, 2)
        # A failed instance stays in the group for this time.
        session = {"consumer_session_timeout_ms": "1000", "consumer_heartbeat_interval_ms": "200"}
        manual = shop.configs(internal_topics_setup="manual", **session)
        java.initialize(shop.id, shop.topology, manual)
        shop.create(OWNERSHIP_TOPIC, 1, RECORD_TOPIC_SETTINGS)
        record = OwnershipRecord(
            application_id=shop.id,
            stack=StackIdentity("s1", "org/shop/prod"),
            topics=shop.topic_ids(*shop.internal_topics),
        )
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        # Others may write below their own keys, before and after the record.
        producer.produce(OWNERSHIP_TOPIC, b"\x00" * 10_000, b"x/shop")
        producer.produce(OWNERSHIP_TOPIC, encode_record(record), key_of("s1", shop.id))
        producer.produce(OWNERSHIP_TOPIC, b"{", b"y/shop")
        assert producer.flush(90) == 0
        java.start(shop.id, shop.topology, manual)
        java.running(shop.id)
        java.close(shop.id)

        shop.delete(shop.changelog)
        shop.create(shop.changelog, 2, {"cleanup.policy": "compact"})
        shop.produce(20)
        java.start(shop.id, shop.topology, manual)
        failed = java.failed(shop.id)
        assert (failed.exception, failed.topics) == ("MissingInternalTopicsException", [shop.changelog])
        assert f"deleted and re-created, their records are lost: {shop.changelog}." in failed.message
        assert shop.end_offsets(shop.sink) == 0
        java.close(shop.id)

        java.start(shop.id, shop.topology, shop.configs(internal_topics_setup="automatic", **session))
        java.running(shop.id)
        assert [line for line in java.log if "WARN" in line and f"are lost: [{shop.changelog}]" in line]
        java.close(shop.id)

        # The next run of `pulumi up` records the new id: the operator has decided.
        new = attrs.evolve(record, topics=shop.topic_ids(*shop.internal_topics))
        producer.produce(OWNERSHIP_TOPIC, encode_record(new), key_of("s1", shop.id))
        assert producer.flush(90) == 0
        java.start(shop.id, shop.topology, manual)
        java.running(shop.id)
        java.close(shop.id)
