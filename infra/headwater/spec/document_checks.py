"""Checks of a document that its schema cannot make: its handles, and the configs of its application.

Handles: `from` and `with` must name an earlier result; without `from` the step before must have one. The
compiler checks what a handle is (stream, table, grouped stream and so on).

Configs: Kafka Streams refuses some values, and does not know some keys. Configs of internal topics (`topic.`)
are checked by `topic_config_problems`.
"""

from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

from headwater.compiler.configs.check import find_refusals
from headwater.compiler.configs.table import HEADWATER_CONFIGS, config_names, split_key
from headwater.model.problems import Problem, ProblemCode, Severity, shorten_text
from headwater.model.versions import SUPPORTED
from headwater.spec.locations import MAX_PROBLEMS, PathPart, RawDocument, mapping_of
from headwater.spec.misspelled_configs import REGISTRY_URL, TOPIC_PREFIX, find_meant_config
from headwater.spec.phrases import nearest_word, one_of
from headwater.spec.scalars import config_text
from headwater.spec.schema import operator_names
from headwater.spec.versions import declared_version, is_version, reports_value

_SOURCES = frozenset({"stream", "table", "globalTable"})
_WITHOUT_RESULT = frozenset({"to", "foreach", "print", "split", "addStateStore", "addGlobalStore"})
_ON_TOPOLOGY = frozenset(
    {"addSource", "addProcessor", "addSink", "connectProcessorAndStateStores", "addReadOnlyStateStore"}
)
"""Calls on the `Topology`: they do not take or return a result."""
_WITH_INPUT = frozenset(operator_names()) - _SOURCES - _ON_TOPOLOGY - {"addStateStore", "addGlobalStore"}
_MOST_LISTED, _MOST_COMPARED = 12, 200
"""How many handles are listed, and how many of the latest are compared with a mistyped one."""

_REGISTRIES = ("schema.registry.", "apicurio.registry.")
_UNCHECKED_PREFIXES = (TOPIC_PREFIX, "client.tag.", "metrics.context.", "__", "internal.")
"""Prefixes of keys with free names, of keys that are checked elsewhere, and of Kafka's undocumented keys."""
_PROVIDERS = "config.providers."
"""Kafka's `AbstractConfig` reads the class and the parameters of each config provider."""

Path = tuple[PathPart, ...]


def handle_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return problems for unknown, repeated and missing handles. What does not fit the schema is skipped."""
    steps = raw.section("topology")
    if not isinstance(steps, list):
        return ()
    handles = _Handles(raw, frozenset(_all_handles(steps)))
    return tuple(islice(handles.problems(steps, ("topology",), None), MAX_PROBLEMS))


def _all_handles(steps: list[Any]) -> Iterator[str]:
    """Yield the handle of each step and branch."""
    for step in steps:
        for options in step.values() if isinstance(step, dict) else ():
            if not isinstance(options, dict):
                continue
            branches = options.get("branches")
            inner = [*(branches if isinstance(branches, list) else ()), options.get("default")]
            for named in (options, *(branch for branch in inner if isinstance(branch, dict))):
                if isinstance(named.get("as"), str):
                    yield named["as"]
                if isinstance(named.get("then"), list):
                    yield from _all_handles(named["then"])


class _Handles:
    """Goes through the steps in order and records the line of each handle."""

    def __init__(self, raw: RawDocument, handles: frozenset[str]) -> None:
        """`handles` are all handles of the document."""
        self._raw = raw
        self._all = handles
        self._has_result = False
        self._known: dict[str, int] = {}

    def problems(self, steps: list[Any], path: Path, preceding: str | None) -> Iterator[Problem]:
        """Yield problems. `preceding` is the operator whose result the first step takes by default."""
        for index, step in enumerate(steps):
            if not (isinstance(step, dict) and len(step) == 1):
                preceding = "?"  # an unknown step probably has a result
                continue
            ((operator, options),) = step.items()
            at, options = (*path, index, operator), options if isinstance(options, dict) else {}
            if operator in _WITH_INPUT:
                yield from self._check_input(operator, options, at, preceding)
            yield from self._check_references(operator, options, at)
            if operator == "split":
                yield from self._check_branches(options, at)
            yield from self._define_handle(options, at)
            if operator not in _ON_TOPOLOGY:
                preceding = operator
                self._has_result = self._has_result or operator not in _WITHOUT_RESULT

    def _check_input(
        self, operator: str, options: dict[str, Any], at: Path, preceding: str | None
    ) -> Iterator[Problem]:
        if "from" in options or (preceding is not None and preceding not in _WITHOUT_RESULT):
            return
        reason = "it is the first step" if preceding is None else f"`{preceding}` before it has no result"
        yield from self._problem(
            at,
            f"`{operator}` has no input: {reason}.",
            expected="`from`, or a step with a result before it",
            found="neither",
            why="Without `from` a step continues from the result of the preceding one.",
            fix="Begin with a step that reads a topic, such as `stream`."
            if not self._has_result
            else "Add `from` with the handle of its input, which is the `as` of an earlier step.",
        )

    def _check_references(self, operator: str, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        for key in ("from", "with"):
            handle = options.get(key)
            if isinstance(handle, str) and handle not in self._known:
                known = [shorten_text(name) for name in islice(reversed(self._known), _MOST_COMPARED)]
                meant, shown = nearest_word(handle, known), shorten_text(handle)
                yield from self._problem(
                    (*at, key),
                    f"`{operator}` refers to the handle `{shown}`, which no earlier step defines.",
                    expected=one_of(known[:_MOST_LISTED]) if known else "a handle of an earlier step",
                    found=f"`{shown}`",
                    why="A step can only use a result of an earlier step.",
                    fix=self._fix_of_unknown(handle, meant),
                )

    def _fix_of_unknown(self, handle: str, meant: str | None) -> str:
        shown = shorten_text(handle)
        if handle in self._all:
            return f"Move the step with `as: {shown}` before this one."
        return f"Did you mean `{meant}`?" if meant else f"Add `as: {shown}` to the step that it refers to."

    def _check_branches(self, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        branches = options.get("branches")
        named = enumerate(branches if isinstance(branches, list) else ())
        positions = [((*at, "branches", index), branch) for index, branch in named]
        for path, branch in (*positions, ((*at, "default"), options.get("default"))):
            if isinstance(branch, dict):
                then = branch.get("then")
                if isinstance(then, list):
                    yield from self.problems(then, (*path, "then"), "branch")
                yield from self._define_handle(branch, path)

    def _define_handle(self, options: dict[str, Any], at: Path) -> Iterator[Problem]:
        handle = options.get("as")
        if not isinstance(handle, str):
            return
        if handle in self._known:
            yield from self._problem(
                (*at, "as"),
                f"The handle `{shorten_text(handle)}` is defined twice.",
                expected="each handle once",
                found=f"first on line {self._known[handle]}",
                why="Which of the two a later step refers to would depend on its position.",
                fix="Give one of them another name.",
            )
            return
        location = self._raw.location((*at, "as"))
        self._known[handle] = location.line if location is not None else 0

    def _problem(
        self, path: Path, summary: str, *, expected: str, found: str, why: str, fix: str
    ) -> Iterator[Problem]:
        location = self._raw.location(path)
        if location is not None:
            yield Problem(
                code=ProblemCode.SCHEMA_VIOLATION,
                summary=summary,
                expected=expected,
                found=found,
                why=why,
                fix=fix,
                location=location,
            )


def config_problems(raw: RawDocument) -> tuple[Problem, ...]:
    """Return errors for refused values, warnings about misspelled keys, hints about other unknown keys."""
    return tuple(islice(chain(_refused_values(raw), _unknown_keys(raw)), MAX_PROBLEMS))


def _refused_values(raw: RawDocument) -> Iterator[Problem]:
    application = raw.section("application")
    if not isinstance(application, dict) or not is_version(application.get("kafkaStreams")):
        return
    version, config = declared_version(application), _config_texts(application.get("config"))
    if version is None:
        return
    for refusal in find_refusals(config, version):
        is_certain = application.get("kafkaStreams") is not None or _is_always_refused(refusal.key, config)
        if is_certain and not reports_value(refusal.key, config.get(refusal.key, ""), version):
            path = ("application", "config", refusal.key)
            yield refusal.to_problem().located(location=raw.location(path))


def _is_always_refused(key: str, config: Mapping[str, str]) -> bool:
    """Return whether every version refuses a config of an application whose version is in its setup record.

    The compiler checks it for the version that the application runs.
    """
    return all(any(refusal.key == key for refusal in find_refusals(config, each)) for each in SUPPORTED)


def _config_texts(config: object) -> Mapping[str, str]:
    """Return the values as in a properties file, without those that do not fit the schema."""
    return {
        key: config_text(value)
        for key, value in mapping_of(config).items()
        if isinstance(value, str | int | float)
    }


def _unknown_keys(raw: RawDocument) -> Iterator[Problem]:
    application = raw.section("application")
    config = application.get("config") if isinstance(application, dict) else None
    if not (isinstance(application, dict) and isinstance(config, dict)):
        return
    for key in config:
        if key == "application.id" and config[key] != application.get("id"):
            yield _other_id(raw, key, str(config[key]), str(application.get("id")))
        elif not _is_known(key):
            meant = find_meant_config(key)
            if meant is not None or not key.startswith(_REGISTRIES):
                yield _unknown_key(raw, key, meant)


def _is_known(key: str) -> bool:
    name, owners = split_key(key)
    return (
        key in HEADWATER_CONFIGS
        or key == REGISTRY_URL
        or key.startswith(_UNCHECKED_PREFIXES)
        or name.startswith(_PROVIDERS)
        or any(name in config_names(owner) for owner in owners)
    )


def _unknown_key(raw: RawDocument, key: str, meant: str | None) -> Problem:
    if meant is None:
        return Problem(
            code=ProblemCode.CONFIG_HAS_NO_EFFECT,
            summary=f"Kafka Streams has no config `{shorten_text(key)}`.",
            expected="a key of Kafka Streams or of its clients",
            found=f"`{shorten_text(key)}`",
            why="Only a class of the application (an interceptor, a serde, a handler) can read it.",
            fix="Keep it if such a class uses it. Otherwise remove it.",
            location=raw.location(("application", "config", key), at_key=True),
            severity=Severity.INFO,
        )
    return Problem(
        code=ProblemCode.CONFIG_HAS_NO_EFFECT,
        summary=f"Kafka Streams has no config `{shorten_text(key)}`.",
        expected=f"`{meant}`",
        found=f"`{shorten_text(key)}`",
        why="Kafka Streams ignores unknown keys, so it would have no effect.",
        fix=f"Did you mean `{meant}`?",
        location=raw.location(("application", "config", key), at_key=True),
        severity=Severity.WARNING,
    )


def _other_id(raw: RawDocument, key: str, found: str, expected: str) -> Problem:
    return Problem(
        code=ProblemCode.INVALID_CONFIG,
        summary="`application.id` contradicts the application's `id`.",
        expected=f"`{expected}`",
        found=f"`{shorten_text(found)}`",
        why="The names of all internal topics begin with the application id, so there can be only one.",
        fix="Remove `application.id` from `config`.",
        location=raw.location(("application", "config", key)),
    )
