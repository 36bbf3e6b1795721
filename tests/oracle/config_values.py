"""Values of configs to try with Kafka: for each type what its limits and Java's parsers make interesting."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from headwater.compiler.configs.table import PREFIXES, Owner, config_names, find_config
from headwater.compiler.configs.values import ConfigType, parse_value
from headwater.model.versions import KafkaStreamsVersion

NOT_COMPARED = {"application.id", "replication.factor"}
"""The id of the document counts, and Headwater refuses factors with which no topic can be created."""
_ANY = ("", " ", "abc", "0", "1", "-1", "5", " 5 ", "+5", "-0", "007", "5.0", "300_000", "1e3", "true")
_NUMBERS = (
    *(
        "-",
        "+",
        "--1",
        "0x10",
        "5 5",
        "1,000",
        "5L",
        "\u0663",
        "\uff15",
        "\U0001d7d3",
        "1\u00a0",
        "\u20005",
        "\t5\n",
        "9" * 30,
    ),
    *(
        "0" * 40 + "5",
        "-" + "0" * 40,
        "+" + "9" * 10,
        "1_0",
        "5.",
        "\u00bd",
        "\u00b2",
        "\u2167",
        "\x005\x1f",
        "\x7f5",
    ),
)
_DECIMALS = (
    *(
        ".5",
        "5.",
        "0.25",
        "0.250000001",
        "0.5",
        "1.0",
        "1e-3",
        "1E400",
        "-1e400",
        "5d",
        "5F",
        "5dd",
        "NaN",
        "nan",
    ),
    *(
        "-NaN",
        "NaNd",
        "Infinity",
        "-Infinity",
        "inf",
        "0x1p-2",
        "0x1.8P0d",
        "0x.p1",
        "0x1p",
        "1e",
        ".",
        "e5",
        "0,5",
    ),
    *("0x1p99999", "\u0660.\u0665", "1__0", "0.3", "0.7"),
)
_BOOLEANS = (
    "TRUE",
    "False",
    " true ",
    "yes",
    "1",
    "on",
    "tru",
    "truee",
    "fal\u017fe",
    "true\u00a0",
    "t",
    "\ufb00",
)
_LISTS = (
    "a",
    "a,b",
    "a, b ,c",
    ",",
    "a,",
    ",a",
    "a,,b",
    "a,a",
    " a , a ",
    "a\u00a0,a",
    "a,b,c,d,e",
    "a,b,c,d,e,f",
    ", ,",
)
_CLASSES = (
    *(
        "java.lang.String",
        " java.util.ArrayList ",
        "",
        " ",
        ".",
        "a..b",
        "java/lang/String",
        "java.lang.String.",
    ),
    *("java.lang.String ", "java.lang. String", "java.util.Map$Entry"),
)


def single_configs(owner: Owner, version: KafkaStreamsVersion) -> Iterator[tuple[str, str]]:
    """Yield pairs of key and value for all configs of `owner`, with and without the prefixes of a client."""
    for key in sorted(config_names(owner)):
        config = find_config(owner, key, version)
        if config is not None and key not in NOT_COMPARED:
            yield from ((key, text) for text in dict.fromkeys(_texts(config)))
            yield from _prefixed(owner, key, config)


def _prefixed(owner: Owner, key: str, config: ConfigType) -> Iterator[tuple[str, str]]:
    texts = ("java.lang.String", "a..b") if config.type == "class" else ("abc", " 7 ", config.default or "x")
    for prefix in (prefix for prefix, of in PREFIXES.items() if of is owner):
        yield from ((prefix + key, text) for text in texts)


def comparable_configs(version: KafkaStreamsVersion) -> dict[str, ConfigType]:
    """Return the configs of Kafka Streams for `random_configs`: whether a class exists is not compared."""
    found = {key: find_config(Owner.STREAMS, key, version) for key in config_names(Owner.STREAMS)}
    return {
        key: config
        for key, config in found.items()
        if config is not None and config.type != "class" and key not in NOT_COMPARED
    }


def _texts(config: ConfigType) -> Iterator[str]:
    if config.type == "class":
        yield from _CLASSES
        return
    yield from _ANY
    if config.default is not None:
        yield config.default
        yield f" {config.default}\n"
    yield from _OF_TYPE.get(config.type, ())
    for limit in (config.least, config.most, *config.extra):
        if limit is not None:
            yield from (str(limit), str(limit - 1), str(limit + 1))
    for word in config.values:
        yield from (word, word.upper(), word.lower(), f" {word}", f"{word},", word[:-1], word + "\u00a0")
    yield from _OF_FORM.get(config.form, ())


_DURATIONS = (
    *(
        "PT1H",
        "P1D",
        "p1dt2h3m4.5s",
        "PT",
        "P",
        "",
        "PT-1H",
        "-PT1H",
        "-PT-1H",
        "P1D T1H",
        "PT1.S",
        "PT1,5S",
        "1H",
    ),
    *(
        "PT0.0000000001S",
        "P99999999999999999999D",
        "P106751991167300D",
        "P106751991167301D",
        "PT+5M",
        "P-1DT24H",
    ),
    *("PT1H1H", "P1H", "P1DT", "PT\u0663H", "PT0S", "PT-0.5S", "+PT1S", "PT.5S", "PT9223372036854775807S"),
)
_OPTIMIZATIONS = (
    *(
        "all",
        "none",
        "all,none",
        "all,",
        ",all",
        " all",
        "all ",
        "none,,",
        "ALL",
        "reuse.ktable.source.topics",
    ),
    *(
        "merge.repartition.topics , single.store.self.join",
        "merge.repartition.topics,all",
        ",",
        ",,",
        "all\u00a0,",
    ),
    *("merge.repartition.topics,merge.repartition.topics", "single.store.self.join,\n"),
)


_LIMITS = tuple(
    str(limit) for bits in (15, 31, 63) for limit in (2**bits, 2**bits - 1, -(2**bits), -(2**bits) - 1)
)
_OF_TYPE: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("short", "int", "long"), _NUMBERS + _LIMITS),
    "double": _DECIMALS,
    "boolean": _BOOLEANS,
    "list": _LISTS,
}
_OF_FORM: Mapping[str, tuple[str, ...]] = {
    "offset reset": ("by_duration", *(f"by_duration:{text}" for text in _DURATIONS)),
    "optimizations": _OPTIMIZATIONS,
}


def random_configs(source: random.Random, keys: Mapping[str, ConfigType]) -> dict[str, str]:
    """Return a few configs together, most of them valid: some that Kafka checks in combination, one other."""
    names = source.sample(sorted(_TOGETHER), k=source.randint(2, 6)) + source.sample(sorted(keys), k=1)
    found = {}
    for name in names:
        values: tuple[Any, ...] = _TOGETHER.get(name) or tuple(_texts(keys[name]))
        if name not in _TOGETHER:
            values = tuple(text for text in values if parse_value(keys[name], text) is not None) or values
        found[name] = str(source.choice(values))
    return found


_TIMES = ("0", "1", "100", "3000", "10000", "10001", "45000", "120000", "2147483647", "x")
_TOGETHER: Mapping[str, tuple[str, ...]] = {
    "processing.guarantee": ("exactly_once_v2", " exactly_once_v2", "exactly_once", "at_least_once", "eos"),
    "commit.interval.ms": _TIMES,
    "producer.transaction.timeout.ms": _TIMES,
    "transaction.timeout.ms": _TIMES,
    "enable.metrics.push": ("true", "false"),
    "consumer.enable.metrics.push": ("true", "false"),
    "main.consumer.enable.metrics.push": ("true", "false"),
    "admin.enable.metrics.push": ("true", "false"),
    "group.protocol": ("streams", "classic", " STREAMS ", "consumer", "Classic"),
    "group.instance.id": ("", "a", "a b", "x" * 247, "x" * 248, " a", "."),
    "main.consumer.group.instance.id": ("", "a", "\u00e4"),
    "topic.segment.bytes": ("16384", "16383", " 16384", "1", "x"),
    "batch.size": ("16384", "1", " 1", "x"),
    "producer.batch.size": ("16384", "20000"),
    "max.in.flight.requests.per.connection": ("1", "5", "6", " 6 ", "0"),
    "producer.max.in.flight.requests.per.connection": ("5", "6"),
    "consumer.max.in.flight.requests.per.connection": ("5", "6", "x"),
    "enable.idempotence": ("true", "false", "x"),
    "producer.enable.idempotence": ("TRUE", "false"),
    "acks": ("all", "-1", "1", "0", "2"),
    "retries": ("0", "1", "x"),
    "producer.retries": ("0", "5"),
    "transactional.id": ("", "a"),
    "producer.transactional.id": ("a", "b"),
    "producer.transaction.two.phase.commit.enable": ("true", "false"),
    "delivery.timeout.ms": _TIMES,
    "producer.delivery.timeout.ms": _TIMES,
    "linger.ms": _TIMES,
    "request.timeout.ms": _TIMES,
    "producer.request.timeout.ms": _TIMES,
    "heartbeat.interval.ms": _TIMES,
    "session.timeout.ms": _TIMES,
    "main.consumer.session.timeout.ms": _TIMES,
    "consumer.heartbeat.interval.ms": _TIMES,
    "security.protocol": ("SASL_SSL", "plaintext", "sasl_plaintext", "SSL"),
    "admin.security.protocol": ("SASL_SSL", "plaintext"),
    "sasl.mechanism": ("", "PLAIN", " "),
    "producer.sasl.mechanism": ("", "PLAIN"),
    "enable.auto.commit": ("false", "true", "x", "FALSE"),
    "main.consumer.enable.auto.commit": ("false", "true", "x"),
    "restore.consumer.enable.auto.commit": ("true", "x"),
    "allow.auto.create.topics": ("false", "true", "x"),
    "main.consumer.allow.auto.create.topics": ("false", "x"),
    "global.consumer.allow.auto.create.topics": ("false", "x"),
    "consumer.group.protocol": ("consumer", "classic", "streams"),
    "main.consumer.group.protocol": ("consumer", "classic", "streams"),
    "isolation.level": ("read_committed", "read_uncommitted", "x"),
    "main.consumer.isolation.level": ("read_committed", "x"),
    "auto.offset.reset": ("earliest", "none", "by_duration:PT1H", "x"),
    "restore.consumer.auto.offset.reset": ("latest", "x"),
    "group.id": ("a", ""),
    "consumer.group.remote.assignor": ("uniform", " ", ""),
    "main.consumer.share.acknowledgement.mode": ("implicit", "x"),
    "partition.assignment.strategy": ("a.B", "", "a,a"),
    "restore.consumer.partition.assignment.strategy": ("a.B", "", "a,a"),
    "consumer.key.deserializer": ("a.B", ""),
    "producer.value.serializer": ("a.B", ""),
    "max.poll.records": ("1", "0", "x"),
    "consumer.max.poll.records": ("1", "0"),
    "main.consumer.max.poll.records": ("5", "x"),
    "rack.aware.assignment.tags": ("zone", "zone,cluster", "zone,", ",", "", "zone, cluster"),
    "client.tag.zone": ("eu", "x" * 30, "x" * 31, "", " ", "\U0001d7d3" * 16),
    "client.tag.cluster": ("a", ""),
    "client.tag.": ("a",),
    "client.tag." + "y" * 20: ("a",),
    "client.tag." + "y" * 21: ("a",),
    "client.tag.c": ("a",),
    "client.tag.d": ("a",),
    "client.tag.e": ("a",),
    "application.server": (
        "localhost",
        "localhost:1",
        "a b:1",
        "",
        " ",
        "[::1]:80",
        "x:99999999999",
        "x:70000",
    ),
    "bootstrap.servers": (
        "localhost:1",
        "localhost",
        "localhost:1,localhost:2",
        "localhost:x",
        "localhost:70000",
    ),
    "admin.bootstrap.servers": ("localhost", "a,a"),
    "consumer.bootstrap.servers": ("x",),
    "upgrade.from": ("2.3", "3.6", "4.2", "null", ""),
    "metric.reporters": ("a.B", "a.B,a.B", ""),
    "admin.metric.reporters": ("a.B,a.B", ","),
}
