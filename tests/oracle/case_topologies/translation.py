"""Translate `topology.txt` of the recorded cases to documents. The language: `cases/README.md`.

Every line is a chain of calls in the order in which Java makes them. An argument in parentheses is called
after its receiver and before the call it belongs to; the chains of branches run once the whole split is made.
"""

import re
from collections.abc import Iterator

import attrs

from tests.oracle.case_topologies.arguments import Arguments, split_top
from tests.oracle.case_topologies.expressions import Kind
from tests.oracle.case_topologies.functions import cogrouped, expressions, predicate, result_holds
from tests.oracle.case_topologies.options import (
    Options,
    join_stores,
    kept,
    materialized,
    named,
    plain,
    processor_api,
    result_kind,
    source,
    supplied,
)

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\s+=\s+(.*)", re.DOTALL)
_LOOP = re.compile(r"for (\w+) in (\d+)\.\.(\d+)\s*:\s*(.*)")
_BRANCH = re.compile(r"(?:([A-Za-z_]\w*)\s+=\s+)?(branch|default)\b(.*)", re.DOTALL)
_COMMENT = re.compile(r"\s+--\s.*$")
_SEPARATOR = re.compile(r"and in the same application.*:$", re.IGNORECASE)
_SOURCES = {"stream", "table", "globalTable"}
_PROCESSOR_API = {
    *("addSource", "addProcessor", "addSink", "addStateStore", "addGlobalStore"),
    "connectProcessorAndStateStores",
}
_ENDS = {"to", "foreach", "print"}
_OPERATORS = {
    *_SOURCES,
    *_PROCESSOR_API,
    *_ENDS,
    *("filter", "filterNot", "map", "mapValues", "flatMap", "flatMapValues", "selectKey", "peek"),
    *("merge", "split", "repartition", "process", "processValues", "transformValues", "toTable", "toStream"),
    *("groupByKey", "groupBy", "windowedBy", "count", "reduce", "aggregate", "cogroup", "suppress"),
    *("join", "leftJoin", "outerJoin"),
}
_JOIN_WORDS = {"key", "foreignKey", "window"}


def translate(text: str, application_id: str, *, runs: bool = False) -> Options:
    """Return the document of a `topology.txt`; one that `runs` has expressions and classes, too."""
    lines = [_COMMENT.sub("", line.rstrip()) for line in text.splitlines()]
    config = dict(line.split(maxsplit=1)[1].split("=", 1) for line in lines if line.startswith("config "))
    program = Program(runs)
    program.run([line for line in lines if line.strip() and not re.match(r"config |note:|--", line)])
    return {
        "application": {"id": application_id, **({"config": config} if config else {})},
        "topology": [{operator: _ordered(options) or None} for operator, options in program.steps],
    }


@attrs.define
class Value:
    """What a call returned; `options` are that call's, to which an alias is added when it is used."""

    kind: str
    options: Options
    alias: str | None = None
    window: Options = attrs.field(factory=dict)
    holds: Kind = "string"


@attrs.define
class Program:
    """The calls so far, the named values and what the last call returned."""

    runs: bool = False
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
        return self._value(word), *_head(rest)

    def _value(self, name: str) -> Value:
        """Return the value of this name; an unknown name is the result of the previous statement."""
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
        return self._value(next(word for word in arguments.words if word not in _JOIN_WORDS))

    def _alias(self, value: Value) -> str:
        if value.alias is None:
            own = value.options.get("name") or value.options.get("topic") or value.kind
            wanted = next((name for name, known in self.names.items() if known is value), str(own))
            taken = (f"{wanted}-{number}" for number in range(2, len(self.aliases) + 3))
            value.alias = (
                wanted if wanted not in self.aliases else next(n for n in taken if n not in self.aliases)
            )
            self.aliases.add(value.alias)
            value.options["as"] = value.alias
        return value.alias

    def emit(self, operator: str, receiver: Value | None, options: Options, kind: str | None) -> Value | None:
        if receiver is not None and receiver is not self.preceding:
            options = {"from": self._alias(receiver), **options}
        self.steps.append((operator, options))
        self.preceding = Value(kind, options) if kind else None
        return self.preceding

    def _apply(
        self, operator: str, receiver: Value | None, arguments: Arguments, branches: list[str]
    ) -> Value | None:
        result = self._made(operator, receiver, arguments, branches)
        if result is not None and self.runs:
            result.holds = result_holds(operator, arguments, receiver.holds if receiver else "string")
        return result

    def _made(
        self, operator: str, receiver: Value | None, arguments: Arguments, branches: list[str]
    ) -> Value | None:
        if operator in _SOURCES:
            return self.emit(operator, None, source(operator, arguments), operator)
        if operator in _PROCESSOR_API:
            options = processor_api(operator, arguments) | self._does(operator, None, arguments)
            return self.emit(operator, None, options, None)
        if operator in {"join", "leftJoin", "outerJoin", "merge"}:
            return self._combine(operator, receiver, arguments)
        if operator == "cogroup":
            return self._cogroup(receiver, arguments)
        if operator == "split":
            return self._split(receiver, arguments, branches)
        return self._plain(operator, receiver, arguments)

    def _plain(self, operator: str, receiver: Value | None, arguments: Arguments) -> Value | None:
        """Apply a call without other streams or tables as arguments."""
        kind = receiver.kind if receiver else ""
        options = plain(operator, kind, arguments) | self._does(operator, receiver, arguments)
        store = options.get("materialized")
        if receiver is not None and receiver.window and isinstance(store, dict):
            options["materialized"] = supplied(store, receiver.window)
        result = self.emit(operator, receiver, options, result_kind(operator, kind))
        if result is not None and operator == "windowedBy":
            result.window = options
        return result

    def _combine(self, operator: str, receiver: Value | None, arguments: Arguments) -> Value | None:
        partner = self._partner(arguments)
        options: Options = {"with": self._alias(partner)}
        does = self._does(operator, receiver, arguments, partner)
        if operator == "merge":
            return self.emit(operator, receiver, options | named(arguments), "stream")
        durations = kept(arguments, "difference", "before", "after", "grace")
        tables = receiver is not None and receiver.kind == "table" and partner.kind == "table"
        if partner.kind == "stream":
            options |= {"window": durations, **named(arguments), **join_stores(arguments)}
        elif tables:
            options |= {"foreignKey": True} if "foreignKey" in arguments.words else {}
            options |= {**named(arguments), **materialized(arguments)}
        else:
            options |= {**durations, **named(arguments)}
        return self.emit(operator, receiver, options | does, "table" if tables else "stream")

    def _does(
        self, operator: str, receiver: Value | None, arguments: Arguments, partner: Value | None = None
    ) -> Options:
        if not self.runs:
            return {}
        holds = [value.holds if value is not None else "string" for value in (receiver, partner)]
        return expressions(operator, arguments, *holds)

    def _cogroup(self, receiver: Value | None, arguments: Arguments) -> Value | None:
        handle = arguments.words[0] if arguments.words else None
        if receiver is not None and receiver.kind == "cogrouped" and handle:
            does = cogrouped(arguments, self._value(handle).holds) if self.runs else {}
            return self.emit(
                "cogroup", receiver, {"with": self._alias(self._value(handle)), **does}, "cogrouped"
            )
        first = self._value(handle) if handle else receiver
        does = cogrouped(arguments, first.holds) if self.runs and first is not None else {}
        return self.emit("cogroup", first, does, "cogrouped")

    def _split(self, receiver: Value | None, arguments: Arguments, branches: list[str]) -> Value | None:
        options: Options = named(arguments)
        children: list[tuple[Value, str | None, str | None]] = []
        for branch in branches:
            found = _BRANCH.match(branch)
            assert found is not None
            branch_arguments = Arguments.parse(found[3])
            child: Options = dict(named(branch_arguments))
            holds = receiver.holds if receiver is not None else "string"
            if self.runs:
                child |= predicate(branch_arguments, holds)
            made = Value("stream", child, holds=holds)
            children.append((made, branch_arguments.branch_of, found[1]))
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
