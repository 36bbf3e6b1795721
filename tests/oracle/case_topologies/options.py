"""Translate the arguments of a call in `topology.txt` to the options of documents."""

import re
from typing import Any

import attrs

from tests.oracle.case_topologies.arguments import Arguments, list_items, mapping_items

Options = dict[str, Any]

_ENDS = {"to", "foreach", "print"}
_STORE_KINDS = {
    "keyvalue": "keyValue",
    "timestamped": "timestampedKeyValue",
    "timestampedkeyvalue": "timestampedKeyValue",
    "versioned": "versionedKeyValue",
    "versionedkeyvalue": "versionedKeyValue",
    "window": "window",
    "timestampedwindow": "timestampedWindow",
    "session": "session",
}
_FACTORY = re.compile(r"(inMemory|persistent)(\w+?)Store\((.*)\)")


def named(arguments: Arguments) -> Options:
    return {"name": arguments.options["name"]} if "name" in arguments.options else {}


def kept(arguments: Arguments, *keys: str) -> Options:
    return {key: arguments.options[key] for key in keys if key in arguments.options}


def _serdes(arguments: Arguments) -> Options:
    return {"serdes": dict(zip(("key", "value"), arguments.serdes, strict=True))} if arguments.serdes else {}


def source(operator: str, arguments: Arguments) -> Options:
    options: Options = {**_topics(arguments), **named(arguments), **_serdes(arguments)}
    reset = arguments.options.get("offsetReset") or arguments.options.get("reset")
    if reset:
        options["offsetReset"] = reset
    if operator != "stream":
        options |= materialized(attrs.evolve(arguments, serdes=None))
    return options


def _topics(arguments: Arguments) -> Options:
    if arguments.pattern is not None:
        return {"pattern": arguments.pattern}
    if arguments.lists:
        topics = list_items(arguments.lists[0])
        return {"topics": topics} if len(topics) > 1 else {"topic": topics[0]}
    return {"topic": arguments.words[-1]}


def materialized(arguments: Arguments) -> Options:
    given: Options = kept(arguments, "store", "type", "retention")
    given |= _logging(arguments) | _flag(arguments, "caching")
    if found := _FACTORY.match(given.get("store", arguments.options.get("supplier", ""))):
        given.pop("store", None)
        given["supplier"] = _supplier(found)
    if given or arguments.serdes:
        given |= _serdes(arguments)
    if not given:
        return {}
    return {"materialized": given["store"] if given.keys() == {"store"} else given}


def supplied(store: Options, window: Options) -> Options:
    """`type=in-memory retention=…` on windows is a supplier: recorded topics ignore its retention."""
    if store.get("type") != "in-memory" or "retention" not in store:
        return store
    supplier: Options = {
        "name": store["store"],
        "kind": "session" if "session" in window else "window",
        "type": "in-memory",
    }
    supplier["retention"] = store["retention"]
    if "session" not in window:
        sized = next(value for key, value in window.items() if key != "emit")
        supplier["windowSize"] = sized.get("size") or sized["difference"]
    return {"supplier": supplier} | {
        key: value for key, value in store.items() if key in {"logging", "caching", "serdes"}
    }


def _supplier(found: re.Match[str]) -> Options:
    """`inMemoryWindowStore(name, retention, size, duplicates)` and its like: the factories of `Stores`."""
    kind = _STORE_KINDS[found[2].lower()]
    values = [item.partition("=")[2] or item for item in list_items(found[3])]
    fields = (
        ["name"] if kind.lower().endswith("keyvalue") and "versioned" not in kind else ["name", "retention"]
    )
    fields += ["windowSize", "retainDuplicates"] if kind.lower().endswith("window") else []
    supplier: Options = {"kind": kind, **dict(zip(fields, values, strict=False))}
    if "retainDuplicates" in supplier:
        supplier["retainDuplicates"] = supplier["retainDuplicates"] == "true"
    return supplier | ({"type": "in-memory"} if found[1] == "inMemory" else {})


def _logging(arguments: Arguments) -> Options:
    text = arguments.options.get("logging")
    if text is None:
        return {}
    return {
        "logging": mapping_items(text) if text.startswith("{") else text not in {"off", "false", "disabled"}
    }


def _flag(arguments: Arguments, key: str) -> Options:
    text = arguments.options.get(key)
    return {} if text is None else {key: text not in {"off", "false", "disabled"}}


def join_stores(arguments: Arguments) -> Options:
    options: Options = {"storeName": arguments.options["store"]} if "store" in arguments.options else {}
    for ours, theirs in (("thisStore", ("thisStore", "this")), ("otherStore", ("otherStore", "other"))):
        for key in theirs:
            if found := _FACTORY.match(arguments.options.get(key, "")):
                options[ours] = {"retainDuplicates": True, **_supplier(found)}
    return options | _logging(arguments)


def _store_builder(arguments: Arguments) -> Options:
    options: Options = {
        "name": arguments.words[0],
        **_serdes(arguments),
        **_logging(arguments),
        **_flag(arguments, "caching"),
    }
    words = [arguments.options.get("kind", ""), arguments.options.get("type", ""), *arguments.words[1:]]
    kinds = [_STORE_KINDS[word.lower()] for word in words if word.lower() in _STORE_KINDS]
    options |= {"kind": kinds[0]} if kinds else {}
    options |= {"type": "in-memory"} if "in-memory" in words else {}
    options |= kept(arguments, "retention")
    options |= {"windowSize": arguments.options["size"]} if "size" in arguments.options else {}
    options |= (
        {"retainDuplicates": True}
        if arguments.options.get("duplicates", "off") not in {"off", "false"}
        else {}
    )
    return options


def processor_api(operator: str, arguments: Arguments) -> Options:
    parents = {"parents": arguments.names("parents")}
    name = {"name": arguments.words[0]} if arguments.words else {}
    if operator == "addSource":
        return {**name, **_topics(attrs.evolve(arguments, words=arguments.words[1:])), **_serdes(arguments)}
    if operator == "addProcessor":
        return {
            **name,
            **parents,
            **({"stores": arguments.names("stores")} if "stores" in arguments.options else {}),
        }
    if operator == "addSink":
        return {
            **name,
            **_target(attrs.evolve(arguments, words=arguments.words[1:])),
            **parents,
            **_serdes(arguments),
        }
    if operator == "connectProcessorAndStateStores":
        stores = arguments.lists[0] if arguments.lists else arguments.options.get("stores", "")
        return {"processor": arguments.words[0], "stores": list_items(stores)}
    builder = _store_builder(arguments)
    if operator == "addGlobalStore":
        return {
            "store": builder,
            "topic": arguments.options.get("topic") or arguments.words[1],
            **named(arguments),
        }
    return {
        **builder,
        **({"processors": arguments.names("processors")} if "processors" in arguments.options else {}),
    }


def _target(arguments: Arguments) -> Options:
    if arguments.functions or "extractor" in arguments.options or arguments.words[0] == "extractor":
        return {"extractor": arguments.options.get("extractor", "<object>")}
    return {"topic": arguments.words[0]}


def plain(operator: str, kind: str, arguments: Arguments) -> Options:
    """Return the options of calls without other streams or tables as arguments."""
    if operator == "windowedBy":
        return _windowed(arguments)
    if operator == "suppress":
        return _suppress(arguments)
    if operator == "to":
        return {**_target(arguments), **named(arguments), **_serdes(arguments)}
    if operator in {"process", "processValues", "transformValues"}:
        stores = arguments.names("stores")
        return {
            **({"stores": stores} if stores else {}),
            **named(arguments),
            **_stored(operator, kind, arguments),
        }
    options = named(arguments)
    if operator == "repartition" and "partitions" in arguments.options:
        options["partitions"] = int(arguments.options["partitions"])
    if operator == "toStream" and arguments.functions:
        options["selectKey"] = True
    return options | _stored(operator, kind, arguments)


def _stored(operator: str, kind: str, arguments: Arguments) -> Options:
    makes_store = operator in {"count", "reduce", "aggregate", "toTable", "transformValues"}
    if makes_store or (kind == "table" and operator in {"filter", "filterNot", "mapValues"}):
        return materialized(arguments)
    takes_serdes = operator in {
        "groupBy",
        "groupByKey",
        "repartition",
        "map",
        "mapValues",
        "flatMap",
        "flatMapValues",
    }
    return _serdes(arguments) if takes_serdes else {}


def _windowed(arguments: Arguments) -> Options:
    kind = next(w for w in arguments.words if w in {"tumbling", "hopping", "sliding", "session", "unlimited"})
    window = kept(arguments, "size", "advance", "difference", "gap", "grace", "start")
    said = " ".join(
        [*arguments.words, arguments.options.get("emit", ""), arguments.options.get("emitStrategy", "")]
    )
    emits_on_close = re.search(r"on-?window-?close", said, re.IGNORECASE)
    return {kind: window or None, **({"emit": "onWindowClose"} if emits_on_close else {})}


def _suppress(arguments: Arguments) -> Options:
    options: Options = named(arguments) | _logging(arguments)
    said = " ".join(arguments.words) + " " + " ".join(arguments.options)
    if "window" in said:
        options = {"until": "windowCloses", **options}
    else:
        limit = next(
            arguments.options[key]
            for key in ("until-time-limit", "limit", "timeLimit", "time")
            if key in arguments.options
        )
        options = {"until": "timeLimit", "timeLimit": limit, **options}
    buffer = arguments.options.get("buffer", "")
    for ours, theirs in (("maxRecords", "records"), ("maxBytes", "bytes")):
        if found := re.search(
            rf"(?:max-?)?{theirs}[:=(]\s*(\d+)",
            buffer + " " + " ".join(map("=".join, arguments.options.items())),
            re.IGNORECASE,
        ):
            options[ours] = int(found[1])
    if re.search(r"shut-?down", said + buffer, re.IGNORECASE) and options["until"] == "timeLimit":
        options["whenFull"] = "shutDown"
    return options


def result_kind(operator: str, kind: str) -> str | None:
    if operator in _ENDS:
        return None
    if operator in {"count", "reduce", "aggregate", "suppress", "toTable", "transformValues"}:
        return "table"
    if operator in {"groupByKey", "groupBy"}:
        return "groupedTable" if kind == "table" else "grouped"
    if operator == "windowedBy":
        return "windowedCogrouped" if kind == "cogrouped" else "windowed"
    if operator in {"toStream", "repartition"}:
        return "stream"
    return "table" if kind == "table" else "stream"
