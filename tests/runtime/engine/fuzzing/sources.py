"""Random sources and sinks."""

from tests.runtime.engine.fuzzing.draft import Draft, Handle, Options

_PROCESSORS = "tests.runtime.engine.fuzzing.processors"


def stream(draft: Draft) -> None:
    """Add a stream of one topic, of two topics, or of a topic that another stream reads, too."""
    if draft.chance(15):
        options: Options = {"topics": [draft.topic(), draft.topic()]}
    elif draft.topics and draft.chance(10):
        options = {"topic": draft.random.choice(draft.topics)}
    else:
        options = {"topic": draft.topic()}
    draft.emit("stream", options | timestamps(draft), "stream")


def timestamps(draft: Draft) -> Options:
    return {"timestamp": draft.functions.timestamp} if draft.chance(10) else {}


def table(draft: Draft) -> None:
    store, versioned = draft.key_value_store(50)
    options = {"topic": draft.topic(), **store, **timestamps(draft)}
    draft.emit("table", options, "table", versioned=versioned)


def global_table(draft: Draft) -> None:
    draft.emit("globalTable", {"topic": draft.topic(), "materialized": draft.name("g")}, "global")


def global_store(draft: Draft) -> None:
    store = {"name": "global", "kind": "keyValue", "logging": False}
    options = {"store": store, "topic": draft.topic(), "class": f"{_PROCESSORS}:Keep"}
    draft.steps.append({"addGlobalStore": options})
    draft.stores.add("global")


def sink(draft: Draft, handle: Handle) -> None:
    """Write a handle to a topic, so that each difference is visible."""
    source = handle.alias
    if handle.kind in {"table", "counts"}:
        source = f"{handle.alias}-stream"
        draft.steps.append({"toStream": {"from": handle.alias, "as": source}})
    if handle.kind != "global":
        draft.steps.append({"to": {"from": source, "topic": f"out-{handle.alias}"}})


def chosen_sink(draft: Draft) -> None:
    """Add a sink with a topic name extractor."""
    options = {"from": draft.partner("stream").alias, "topicExpression": draft.functions.topic}
    draft.steps.append({"to": options})
