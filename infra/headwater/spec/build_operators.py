"""Build the model's operator from a call of a document. The input fits the schema, so this cannot fail."""

from collections.abc import Callable
from functools import partial
from typing import Any

from headwater.model import operators as model
from headwater.model import processor_api
from headwater.model.durations import parse_duration
from headwater.model.operators import SuppressUntil
from headwater.model.windows import (
    HoppingWindow,
    JoinWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)
from headwater.spec import build_stores as stores
from headwater.spec.build_stores import Options
from headwater.spec.scalars import config_text

_EXPRESSIONS = frozenset(
    {"where", "key", "value", "each", "add", "remove", "init", "merge", "timestamp", "topicExpression"}
)
"""The options that are expressions; a test compares them with the schema."""


def complete_options(given: Options | str | None) -> Options:
    """Return the options of a call: text is short for `topic`, and numbers in expressions become text."""
    if given is None:
        return {}
    if isinstance(given, str):
        return {"topic": given}
    return {
        key: config_text(value) if key in _EXPRESSIONS and not isinstance(value, str) else value
        for key, value in given.items()
    }


def read_topics(options: Options) -> model.Topics:
    """Return the topics of a source: one name, several names, or a pattern."""
    if "pattern" in options:
        return model.Topics(pattern=options["pattern"])
    return model.Topics(tuple(options["topics"]) if "topics" in options else (options["topic"],))


def _consumed(options: Options) -> dict[str, Any]:
    return {
        "name": options.get("name"),
        "offset_reset": options.get("offsetReset"),
        "serdes": stores.read_serdes(options),
        "timestamp": options.get("timestamp"),
    }


def _stream(options: Options) -> model.ReadStream:
    return model.ReadStream(read_topics(options), **_consumed(options))


def _table(options: Options) -> model.ReadTable:
    return model.ReadTable(
        options["topic"], materialized=stores.build_materialized(options), **_consumed(options)
    )


def _global_table(options: Options) -> model.GlobalTable:
    return model.GlobalTable(
        options["topic"],
        options.get("name"),
        stores.build_materialized(options),
        serdes=stores.read_serdes(options),
    )


def _transform(kind: model.TransformKind, options: Options) -> model.Transform:
    return model.Transform(
        kind,
        name=options.get("name"),
        key=options.get("key"),
        value=options.get("value"),
        where=options.get("where"),
        each=options.get("each"),
        materialized=stores.build_materialized(options),
        serdes=stores.read_serdes(options),
    )


def _processor(options: Options) -> dict[str, Any]:
    given = options.get("stores", [])
    return {
        "name": options.get("name"),
        "stores": stores.named_stores(given),
        "connected": stores.inline_stores(given),
        "processor_class": options.get("class"),
        "serdes": stores.read_serdes(options),
    }


def _process(options: Options) -> model.Process:
    return model.Process(**_processor(options))


def _process_values(options: Options) -> model.ProcessValues:
    return model.ProcessValues(**_processor(options))


def _transform_values(options: Options) -> model.TransformValues:
    return model.TransformValues(materialized=stores.build_materialized(options), **_processor(options))


def _merge(options: Options) -> model.Merge:
    return model.Merge(options["with"], options.get("name"))


def _repartition(options: Options) -> model.Repartition:
    return model.Repartition(
        options.get("name"),
        options.get("partitions"),
        stores.read_serdes(options),
        options.get("partitioner"),
    )


def _to(options: Options) -> model.To:
    return model.To(
        options.get("topic"),
        options.get("extractor", options.get("topicExpression")),
        options.get("name"),
        stores.read_serdes(options),
        options.get("partitioner"),
        options.get("topicExpression", options.get("extractor")),
    )


def _group_by_key(options: Options) -> model.GroupByKey:
    return model.GroupByKey(options.get("name"), stores.read_serdes(options))


def _group_by(options: Options) -> model.GroupBy:
    return model.GroupBy(
        options.get("name"), options.get("key"), options.get("value"), stores.read_serdes(options)
    )


def _windowed_by(options: Options) -> model.WindowedBy:
    return model.WindowedBy(_window(options), emit_on_close=options.get("emit") == "onWindowClose")


def _window(options: Options) -> Window:
    kind = next(kind for kind in _WINDOWS if kind in options)
    given = options[kind] or {}
    return _WINDOWS[kind](**{_WINDOW_FIELDS[key]: parse_duration(value) for key, value in given.items()})


_WINDOWS: dict[str, Callable[..., Window]] = {
    "tumbling": TumblingWindow,
    "hopping": HoppingWindow,
    "sliding": SlidingWindow,
    "session": SessionWindow,
    "unlimited": UnlimitedWindow,
}
_WINDOW_FIELDS = {
    "size": "size_ms",
    "advance": "advance_ms",
    "difference": "difference_ms",
    "gap": "gap_ms",
    "grace": "grace_ms",
    "start": "start_ms",
}


def _cogroup(options: Options) -> model.Cogroup:
    return model.Cogroup(options.get("with"), options.get("add"))


def _count(options: Options) -> model.Count:
    return model.Count(options.get("name"), stores.build_materialized(options))


def _reduce(options: Options) -> model.Reduce:
    return model.Reduce(
        options.get("name"), stores.build_materialized(options), options.get("add"), options.get("remove")
    )


def _aggregate(options: Options) -> model.Aggregate:
    return model.Aggregate(
        options.get("name"),
        stores.build_materialized(options),
        options.get("init"),
        options.get("add"),
        options.get("remove"),
        options.get("merge"),
    )


def _suppress(options: Options) -> model.Suppress:
    return model.Suppress(
        SuppressUntil(options["until"]),
        name=options.get("name"),
        time_limit_ms=stores.read_duration(options, "timeLimit"),
        max_records=options.get("maxRecords"),
        max_bytes=options.get("maxBytes"),
        shut_down_when_full=options.get("whenFull") == "shutDown",
        logging=stores.read_logging(options),
    )


def _join(kind: model.JoinType, options: Options) -> model.Join:
    foreign_key = options.get("foreignKey", False)
    return model.Join(
        kind,
        options["with"],
        name=options.get("name"),
        window=_join_window(options["window"]) if "window" in options else None,
        store_name=options.get("storeName"),
        this_supplier=stores.build_join_supplier(options, "thisStore"),
        other_supplier=stores.build_join_supplier(options, "otherStore"),
        logging=stores.read_logging(options),
        grace_ms=stores.read_duration(options, "grace"),
        is_foreign_key=foreign_key is not False,
        foreign_key=foreign_key if isinstance(foreign_key, str) else None,
        key=options.get("key"),
        value=options.get("value"),
        materialized=stores.build_materialized(options),
        serdes=stores.read_serdes(options),
    )


_GRACE_OF_EAGER_JOINS_MS = 24 * 60 * 60 * 1000
"""`Windows#DEPRECATED_DEFAULT_24_HR_GRACE_PERIOD`: it includes the window's length."""


def _join_window(options: Options) -> JoinWindow:
    both = stores.read_duration(options, "difference") or 0
    before, after = stores.read_duration(options, "before"), stores.read_duration(options, "after")
    grace, eager = stores.read_duration(options, "grace"), options.get("eager", False)
    if grace is None:
        grace = max(_GRACE_OF_EAGER_JOINS_MS - 2 * both, 0) if eager else 0
    return JoinWindow(
        before_ms=both if before is None else before,
        after_ms=both if after is None else after,
        grace_ms=grace,
        eager=eager,
    )


def _to_table(options: Options) -> model.ToTable:
    return model.ToTable(options.get("name"), stores.build_materialized(options), stores.read_serdes(options))


def _to_stream(options: Options) -> model.ToStream:
    mapper = options.get("selectKey", False)
    return model.ToStream(
        options.get("name"), mapper is not False, mapper if isinstance(mapper, str) else None
    )


def _add_state_store(options: Options) -> processor_api.AddStateStore:
    return processor_api.AddStateStore(stores.build_store(options), tuple(options.get("processors", ())))


def _add_global_store(options: Options) -> processor_api.AddGlobalStore:
    return processor_api.AddGlobalStore(
        stores.build_topic_store(options["store"]),
        options["topic"],
        name=options.get("name"),
        source_name=options.get("sourceName"),
        processor_class=options.get("class"),
        serdes=stores.read_serdes(options),
    )


def _add_source(options: Options) -> processor_api.AddSource:
    return processor_api.AddSource(topics=read_topics(options), **_consumed(options))


def _add_processor(options: Options) -> processor_api.AddProcessor:
    return processor_api.AddProcessor(
        options["name"],
        tuple(options["parents"]),
        stores.inline_stores(options.get("stores", [])),
        options.get("class"),
    )


def _add_sink(options: Options) -> processor_api.AddSink:
    return processor_api.AddSink(
        options["name"],
        tuple(options["parents"]),
        topic=options.get("topic"),
        extractor=options.get("extractor", options.get("topicExpression")),
        serdes=stores.read_serdes(options),
        partitioner=options.get("partitioner"),
        topic_expression=options.get("topicExpression", options.get("extractor")),
    )


def _add_read_only_state_store(options: Options) -> processor_api.AddReadOnlyStateStore:
    return processor_api.AddReadOnlyStateStore(
        stores.build_topic_store(options["store"]),
        options["topic"],
        source_name=options["sourceName"],
        name=options["name"],
        processor_class=options.get("class"),
        serdes=stores.read_serdes(options),
        timestamp=options.get("timestamp"),
    )


def _connect(options: Options) -> processor_api.ConnectStores:
    return processor_api.ConnectStores(options["processor"], tuple(options["stores"]))


BUILDERS: dict[str, Callable[[Options], model.Operator]] = {
    "stream": _stream,
    "table": _table,
    "globalTable": _global_table,
    **{kind.value: partial(_transform, kind) for kind in model.TransformKind},
    "process": _process,
    "processValues": _process_values,
    "transformValues": _transform_values,
    "merge": _merge,
    "repartition": _repartition,
    "to": _to,
    "groupByKey": _group_by_key,
    "groupBy": _group_by,
    "windowedBy": _windowed_by,
    "cogroup": _cogroup,
    "count": _count,
    "reduce": _reduce,
    "aggregate": _aggregate,
    "suppress": _suppress,
    **{kind.value: partial(_join, kind) for kind in model.JoinType},
    "toTable": _to_table,
    "toStream": _to_stream,
    "addStateStore": _add_state_store,
    "addGlobalStore": _add_global_store,
    "addSource": _add_source,
    "addProcessor": _add_processor,
    "addSink": _add_sink,
    "connectProcessorAndStateStores": _connect,
    "addReadOnlyStateStore": _add_read_only_state_store,
}
"""Each operator of the schema except `split`, whose branches contain steps (`build_document`)."""
