"""From the recorded cases' `topology.txt` to our documents, by rule. The language: `cases/README.md`.

Every line is a chain of calls in the order in which Java makes them. An argument in parentheses is called after its
receiver and before the call it belongs to; the chains of branches run once the whole split is made.
"""

import re
from collections.abc import Iterator
from typing import Any

import attrs

from tests.oracle.topology_txt_arguments import Arguments, list_items, mapping_items, split_top

Options = dict[str, Any]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\s+=\s+(.*)", re.DOTALL)
_LOOP = re.compile(r"for (\w+) in (\d+)\.\.(\d+)\s*:\s*(.*)")
_BRANCH = re.compile(r"(?:([A-Za-z_]\w*)\s+=\s+)?(branch|default)\b(.*)", re.DOTALL)
_COMMENT = re.compile(r"\s+--\s.*$")
_SEPARATOR = re.compile(r"and in the same application.*:$", re.IGNORECASE)
_SOURCES = {"stream", "table", "globalTable"}
_STATELESS = "filter filterNot map mapValues flatMap flatMapValues selectKey peek foreach print".split()
_PROCESSOR_API = {"addSource", "addProcessor", "addSink", "addStateStore", "addGlobalStore", "connectProcessorAndStateStores"}
_ENDS = {"to", "foreach", "print"}
_OPERATORS = {
    *_SOURCES, *_STATELESS, *_PROCESSOR_API, *_ENDS, "merge", "split", "repartition", "process", "processValues",
    "transformValues", "groupByKey", "groupBy", "windowedBy", "count", "reduce", "aggregate", "cogroup", "suppress",
    "join", "leftJoin", "outerJoin", "toTable", "toStream",
}  # fmt: skip
_JOIN_WORDS = {"key", "foreignKey", "window"}
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


def translate(text: str, application_id: str) -> Options:
    """Return the document of a `topology.txt`."""
    lines = [_COMMENT.sub("", line.rstrip()) for line in text.splitlines()]
    config = dict(line.split(maxsplit=1)[1].split("=", 1) for line in lines if line.startswith("config "))
    program = Program()
    program.run([line for line in lines if line.strip() and not re.match(r"config |note:|--", line)])
    return {
        "application": {"id": application_id, **({"config": config} if config else {})},
        "topology": [{operator: _ordered(options) or None} for operator, options in program.steps],
    }


@attrs.define
class Value:
    """What a call returned; `options` are that call's, to which an alias is added once somebody needs it."""

    kind: str
    options: Options
    alias: str | None = None
    window: Options = attrs.field(factory=dict)


@attrs.define
class Program:
    """The calls so far, the named values and what the last call returned."""

    steps: list[tuple[str, Options]] = attrs.field(factory=list)
    names: dict[str, Value] = attrs.field(factory=dict)
    current: Value | None = None
    last_statement: Value | None = None
    preceding: Value | None = None
    aliases: set[str] = attrs.field(factory=set)

    def run(self, lines: list[str]) -> None:
        for statement in _statements(lines):
            if found := _LOOP.match(statement[0].strip()):
                self._loop(found, statement[1:])
            elif not _SEPARATOR.match(statement[0]):
                self._statement(list(_pieces(statement)))

    def _loop(self, found: re.Match[str], block: list[str]) -> None:
        variable, first, last, inline = found.groups()
        margin = min((len(line) - len(line.lstrip()) for line in block), default=0)
        body = [inline, *block] if inline else [line[margin:] for line in block]
        for number in range(int(first), int(last) + 1):
            self.run([_substituted(line, variable, number) for line in body])

    def _statement(self, pieces: list[str]) -> None:
        self.last_statement = self.current
        bound: list[str] = []
        branches = [piece for piece in pieces if _BRANCH.match(piece)]
        for piece in pieces:
            if piece in branches:
                continue
            if found := _ASSIGNMENT.match(piece):
                bound.append(found[1])
            self._call(found[2] if found else piece, branches)
        for name in bound:
            if self.current is not None:
                self.names[name] = self.current

    def _call(self, text: str, branches: list[str] | tuple[()] = ()) -> None:
        receiver, operator, rest = self._receiver(text)
        arguments = Arguments.parse(rest)
        if operator:
            self.current = self._apply(operator, receiver, arguments, list(branches))
        else:
            self.current = receiver

    def _receiver(self, text: str) -> tuple[Value | None, str, str]:
        if text.startswith("("):
            inner, _, after = text[1:].partition(")")
            while inner.count("(") > inner.count(")"):
                more, _, after = after.partition(")")
                inner += ")" + more
            self.chain(inner)
            return self.current, *_head(after.strip())
        word, rest = _head(text)
        if word in _OPERATORS:
            return self.current, word, rest
        return self._named(word), *_head(rest)

    def _named(self, name: str) -> Value:
        """A name that was never given is that of the statement before."""
        if name not in self.names:
            if self.last_statement is None:
                raise ValueError(f"no value named {name}")
            self.names[name] = self.last_statement
        return self.names[name]

    def chain(self, text: str) -> None:
        for piece in split_top(text, ";"):
            self._call(piece)

    def _partner(self, arguments: Arguments) -> Value:
        if arguments.nested:
            self.chain(arguments.nested[0])
            assert self.current is not None
            return self.current
        return self._named(next(word for word in arguments.words if word not in _JOIN_WORDS))

    def _alias(self, value: Value) -> str:
        if value.alias is None:
            own = value.options.get("name") or value.options.get("topic") or value.kind
            wanted = next((name for name, known in self.names.items() if known is value), str(own))
            taken = (f"{wanted}-{number}" for number in range(2, len(self.aliases) + 3))
            value.alias = wanted if wanted not in self.aliases else next(n for n in taken if n not in self.aliases)
            self.aliases.add(value.alias)
            value.options["as"] = value.alias
        return value.alias

    def emit(self, operator: str, receiver: Value | None, options: Options, kind: str | None) -> Value | None:
        if receiver is not None and receiver is not self.preceding:
            options = {"from": self._alias(receiver), **options}
        self.steps.append((operator, options))
        self.preceding = Value(kind, options) if kind else None
        return self.preceding

    def _apply(self, operator: str, receiver: Value | None, arguments: Arguments, branches: list[str]) -> Value | None:
        if operator in _SOURCES:
            return self.emit(operator, None, _source(operator, arguments), operator)
        if operator in _PROCESSOR_API:
            return self.emit(operator, None, _processor_api(operator, arguments), None)
        if operator in {"join", "leftJoin", "outerJoin"}:
            return self._join(operator, receiver, arguments)
        if operator == "cogroup":
            return self._cogroup(receiver, arguments)
        if operator == "merge":
            partner = self._partner(arguments)
            return self.emit(operator, receiver, {"with": self._alias(partner), **_named(arguments)}, "stream")
        if operator == "split":
            return self._split(receiver, arguments, branches)
        kind = receiver.kind if receiver else ""
        options = _options(operator, kind, arguments)
        if receiver is not None and receiver.window and isinstance(store := options.get("materialized"), dict):
            options["materialized"] = _supplied(store, receiver.window)
        result = self.emit(operator, receiver, options, _result(operator, kind))
        if result is not None and operator == "windowedBy":
            result.window = options
        return result

    def _join(self, operator: str, receiver: Value | None, arguments: Arguments) -> Value | None:
        partner = self._partner(arguments)
        options: Options = {"with": self._alias(partner)}
        durations = _kept(arguments, "difference", "before", "after", "grace")
        tables = receiver is not None and receiver.kind == "table" and partner.kind == "table"
        if partner.kind == "stream":
            options |= {"window": durations, **_named(arguments), **_join_stores(arguments)}
        elif tables:
            options |= {"foreignKey": True} if "foreignKey" in arguments.words else {}
            options |= {**_named(arguments), **_materialized(arguments)}
        else:
            options |= {**durations, **_named(arguments)}
        return self.emit(operator, receiver, options, "table" if tables else "stream")

    def _cogroup(self, receiver: Value | None, arguments: Arguments) -> Value | None:
        handle = arguments.words[0] if arguments.words else None
        if receiver is not None and receiver.kind == "cogrouped" and handle:
            return self.emit("cogroup", receiver, {"with": self._alias(self._named(handle))}, "cogrouped")
        return self.emit("cogroup", self._named(handle) if handle else receiver, {}, "cogrouped")

    def _split(self, receiver: Value | None, arguments: Arguments, branches: list[str]) -> Value | None:
        options: Options = _named(arguments)
        children: list[tuple[Value, str | None, str | None]] = []
        for branch in branches:
            found = _BRANCH.match(branch)
            assert found is not None
            branch_arguments = Arguments.parse(found[3])
            child: Options = dict(_named(branch_arguments))
            children.append((Value("stream", child), branch_arguments.branch_of, found[1]))
            if found[2] == "branch":
                options.setdefault("branches", []).append(child)
            else:
                options["default"] = child
        self.emit("split", receiver, options, None)
        for child_value, chain, name in children:
            if name:
                self.names[name] = child_value
            if chain:
                self.current = child_value
                self.chain(chain)
        if options.get("default") == {}:
            options["default"] = True
        return None


def _statements(lines: list[str]) -> Iterator[list[str]]:
    statement: list[str] = []
    for line in lines:
        if statement and not line[0].isspace() and not _BRANCH.match(line):
            yield statement
            statement = []
        statement.append(line)
    if statement:
        yield statement


def _pieces(statement: list[str]) -> Iterator[str]:
    for line in statement:
        if _BRANCH.match(line.strip()):
            yield line.strip()
        else:
            yield from (piece for piece in split_top(line.strip(), ";") if piece)


def _head(text: str) -> tuple[str, str]:
    word, _, rest = text.partition(" ")
    return word, rest.strip()


def _substituted(line: str, variable: str, number: int) -> str:
    """`{j}`, `{j+1}`, `{j-1}`."""
    return re.sub(
        rf"\{{{variable}\s*([+-]\s*\d+)?\}}",
        lambda found: str(number + int((found[1] or "0").replace(" ", ""))),
        line,
    )


def _ordered(options: Options) -> Options:
    first = {"from": options["from"]} if "from" in options else {}
    last = {"as": options["as"]} if "as" in options else {}
    return first | {key: value for key, value in options.items() if key not in {"from", "as"}} | last


def _named(arguments: Arguments) -> Options:
    return {"name": arguments.options["name"]} if "name" in arguments.options else {}


def _kept(arguments: Arguments, *keys: str) -> Options:
    return {key: arguments.options[key] for key in keys if key in arguments.options}


def _serdes(arguments: Arguments) -> Options:
    return {"serdes": dict(zip(("key", "value"), arguments.serdes, strict=True))} if arguments.serdes else {}


def _source(operator: str, arguments: Arguments) -> Options:
    options: Options = {**_topics(arguments), **_named(arguments), **_serdes(arguments)}
    reset = arguments.options.get("offsetReset") or arguments.options.get("reset")
    if reset:
        options["offsetReset"] = reset
    if operator != "stream":
        options |= _materialized(attrs.evolve(arguments, serdes=None))
    return options


def _topics(arguments: Arguments) -> Options:
    if arguments.pattern is not None:
        return {"pattern": arguments.pattern}
    if arguments.lists:
        topics = list_items(arguments.lists[0])
        return {"topics": topics} if len(topics) > 1 else {"topic": topics[0]}
    return {"topic": arguments.words[-1]}


def _materialized(arguments: Arguments) -> Options:
    given: Options = _kept(arguments, "store", "type", "retention")
    given |= _logging(arguments) | _flag(arguments, "caching")
    if found := _FACTORY.match(given.get("store", arguments.options.get("supplier", ""))):
        given.pop("store", None)
        given["supplier"] = _supplier(found)
    if given or arguments.serdes:
        given |= _serdes(arguments)
    if not given:
        return {}
    return {"materialized": given["store"] if given.keys() == {"store"} else given}


def _supplied(store: Options, window: Options) -> Options:
    """`type=in-memory retention=…` of a windowed result is a store supplier: recorded topics do not follow its retention."""
    if store.get("type") != "in-memory" or "retention" not in store:
        return store
    supplier: Options = {"name": store["store"], "kind": "session" if "session" in window else "window", "type": "in-memory"}
    supplier["retention"] = store["retention"]
    if "session" not in window:
        sized = next(value for key, value in window.items() if key != "emit")
        supplier["windowSize"] = sized.get("size") or sized["difference"]
    return {"supplier": supplier} | {key: value for key, value in store.items() if key in {"logging", "caching", "serdes"}}


def _supplier(found: re.Match[str]) -> Options:
    """`inMemoryWindowStore(name, retention, size, duplicates)` and its like, as the factories of `Stores` are written."""
    kind = _STORE_KINDS[found[2].lower()]
    values = [item.partition("=")[2] or item for item in list_items(found[3])]
    fields = ["name"] if kind.lower().endswith("keyvalue") and "versioned" not in kind else ["name", "retention"]
    fields += ["windowSize", "retainDuplicates"] if kind.lower().endswith("window") else []
    supplier: Options = {"kind": kind, **dict(zip(fields, values, strict=False))}
    if "retainDuplicates" in supplier:
        supplier["retainDuplicates"] = supplier["retainDuplicates"] == "true"
    return supplier | ({"type": "in-memory"} if found[1] == "inMemory" else {})


def _logging(arguments: Arguments) -> Options:
    text = arguments.options.get("logging")
    if text is None:
        return {}
    return {"logging": mapping_items(text) if text.startswith("{") else text not in {"off", "false", "disabled"}}


def _flag(arguments: Arguments, key: str) -> Options:
    text = arguments.options.get(key)
    return {} if text is None else {key: text not in {"off", "false", "disabled"}}


def _join_stores(arguments: Arguments) -> Options:
    options: Options = {"storeName": arguments.options["store"]} if "store" in arguments.options else {}
    for ours, theirs in (("thisStore", ("thisStore", "this")), ("otherStore", ("otherStore", "other"))):
        for key in theirs:
            if found := _FACTORY.match(arguments.options.get(key, "")):
                options[ours] = {"retainDuplicates": True, **_supplier(found)}
    return options | _logging(arguments)


def _store_builder(arguments: Arguments) -> Options:
    options: Options = {"name": arguments.words[0], **_serdes(arguments), **_logging(arguments), **_flag(arguments, "caching")}
    words = [arguments.options.get("kind", ""), arguments.options.get("type", ""), *arguments.words[1:]]
    kinds = [_STORE_KINDS[word.lower()] for word in words if word.lower() in _STORE_KINDS]
    options |= {"kind": kinds[0]} if kinds else {}
    options |= {"type": "in-memory"} if "in-memory" in words else {}
    options |= _kept(arguments, "retention")
    options |= {"windowSize": arguments.options["size"]} if "size" in arguments.options else {}
    options |= {"retainDuplicates": True} if arguments.options.get("duplicates", "off") not in {"off", "false"} else {}
    return options


def _processor_api(operator: str, arguments: Arguments) -> Options:
    parents = {"parents": arguments.names("parents")}
    name = {"name": arguments.words[0]} if arguments.words else {}
    if operator == "addSource":
        return {**name, **_topics(attrs.evolve(arguments, words=arguments.words[1:])), **_serdes(arguments)}
    if operator == "addProcessor":
        return {**name, **parents, **({"stores": arguments.names("stores")} if "stores" in arguments.options else {})}
    if operator == "addSink":
        return {**name, **_target(attrs.evolve(arguments, words=arguments.words[1:])), **parents, **_serdes(arguments)}
    if operator == "connectProcessorAndStateStores":
        stores = arguments.lists[0] if arguments.lists else arguments.options.get("stores", "")
        return {"processor": arguments.words[0], "stores": list_items(stores)}
    builder = _store_builder(arguments)
    if operator == "addGlobalStore":
        return {"store": builder, "topic": arguments.options.get("topic") or arguments.words[1], **_named(arguments)}
    return {**builder, **({"processors": arguments.names("processors")} if "processors" in arguments.options else {})}


def _target(arguments: Arguments) -> Options:
    if arguments.functions or "extractor" in arguments.options or arguments.words[0] == "extractor":
        return {"extractor": arguments.options.get("extractor", "<object>")}
    return {"topic": arguments.words[0]}


def _options(operator: str, kind: str, arguments: Arguments) -> Options:
    """Options of the calls that take no other value."""
    if operator == "windowedBy":
        return _windowed(arguments)
    if operator == "suppress":
        return _suppress(arguments)
    if operator == "to":
        return {**_target(arguments), **_named(arguments), **_serdes(arguments)}
    if operator in {"process", "processValues", "transformValues"}:
        stores = arguments.names("stores")
        return {**({"stores": stores} if stores else {}), **_named(arguments), **_stored(operator, kind, arguments)}
    options = _named(arguments)
    if operator == "repartition" and "partitions" in arguments.options:
        options["partitions"] = int(arguments.options["partitions"])
    if operator == "toStream" and arguments.functions:
        options["selectKey"] = True
    return options | _stored(operator, kind, arguments)


def _stored(operator: str, kind: str, arguments: Arguments) -> Options:
    makes_store = operator in {"count", "reduce", "aggregate", "toTable", "transformValues"}
    if makes_store or (kind == "table" and operator in {"filter", "filterNot", "mapValues"}):
        return _materialized(arguments)
    takes_serdes = operator in {"groupBy", "groupByKey", "repartition", "map", "mapValues", "flatMap", "flatMapValues"}
    return _serdes(arguments) if takes_serdes else {}


def _windowed(arguments: Arguments) -> Options:
    kind = next(w for w in arguments.words if w in {"tumbling", "hopping", "sliding", "session", "unlimited"})
    window = _kept(arguments, "size", "advance", "difference", "gap", "grace", "start")
    said = " ".join([*arguments.words, arguments.options.get("emit", ""), arguments.options.get("emitStrategy", "")])
    emits_on_close = re.search(r"on-?window-?close", said, re.IGNORECASE)
    return {kind: window or None, **({"emit": "onWindowClose"} if emits_on_close else {})}


def _suppress(arguments: Arguments) -> Options:
    options: Options = _named(arguments) | _logging(arguments)
    said = " ".join(arguments.words) + " " + " ".join(arguments.options)
    if "window" in said:
        options = {"until": "windowCloses", **options}
    else:
        limit = next(arguments.options[key] for key in ("until-time-limit", "limit", "timeLimit", "time") if key in arguments.options)
        options = {"until": "timeLimit", "timeLimit": limit, **options}
    buffer = arguments.options.get("buffer", "")
    for ours, theirs in (("maxRecords", "records"), ("maxBytes", "bytes")):
        if found := re.search(rf"(?:max-?)?{theirs}[:=(]\s*(\d+)", buffer + " " + " ".join(map("=".join, arguments.options.items())), re.IGNORECASE):
            options[ours] = int(found[1])
    if re.search(r"shut-?down", said + buffer, re.IGNORECASE) and options["until"] == "timeLimit":
        options["whenFull"] = "shutDown"
    return options


def _result(operator: str, kind: str) -> str | None:
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
