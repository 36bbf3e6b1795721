"""Load policy files, with all problems."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from headwater.compiler.java.patterns import JavaPattern, UntranslatablePatternError
from headwater.model.policies import (
    EVERY_CLASS,
    ApplicationPartitions,
    BlastRadius,
    Bounds,
    DriftTolerance,
    Effect,
    MinInsyncReplicas,
    Named,
    NamedResources,
    Naming,
    Policy,
    PolicyRule,
    ReplicationFactor,
    Retention,
    TopicClass,
    TopicConfig,
    TopicPartitions,
)
from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity, errors
from headwater.spec.build_stores import Options, read_duration
from headwater.spec.files import POLICY_FILE, read_confined, read_regular_file
from headwater.spec.locations import PathPart, RawDocument
from headwater.spec.scalars import config_text
from headwater.spec.schema_problems import schema_problems
from headwater.spec.topic_configs import broker_text
from headwater.spec.yaml_text import read_yaml


@attrs.frozen
class Policies:
    """What was loaded: the policies of the files without errors, and the problems of all files."""

    policies: tuple[Policy, ...] = ()
    problems: tuple[Problem, ...] = ()


def load_policies(files: Sequence[Path], folder: Path | None = None) -> Policies:
    """Load policy files. Invalid input raises nothing: it is in `problems`.

    With a `folder`, the files are those that a setting names: they must be in or below the folder.
    """
    policies: list[Policy] = []
    problems: list[Problem] = []
    for file in files:
        text = read_regular_file(file, POLICY_FILE) if folder is None else _confine_file(folder, file)
        shown = file if folder is None else folder / file
        loaded = Policies((), (text,)) if isinstance(text, Problem) else load_policies_text(text, str(shown))
        policies += loaded.policies
        problems += loaded.problems
    return Policies(tuple(policies), tuple(problems))


def read_policies(files: Sequence[Path]) -> tuple[Policy, ...]:
    """Return the policies of all files; raises `ProblemsError` if one has errors."""
    loaded = load_policies(files)
    if errors(loaded.problems):
        raise ProblemsError(loaded.problems)
    return loaded.policies


def load_policies_text(text: str, file: str) -> Policies:
    """Load the YAML or JSON text of one file; `file` is its name in locations."""
    raws, problems = read_yaml(text, file)
    found = list(problems)
    if not raws and not problems:
        found.append(_empty_file(file))
    policies: list[Policy] = []
    for raw in raws:
        faults = schema_problems(raw, POLICY_FILE)
        faults = faults or (() if problems else tuple(_ineffective_policies(raw)))
        found += faults
        if not errors(faults):
            policies += _build_policies(raw)
    return Policies(() if errors(found) else tuple(policies), tuple(found))


def _confine_file(folder: Path, file: Path) -> str | Problem:
    text = read_confined(folder, str(file), POLICY_FILE)
    if text is not None:
        return text
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"Policy file {file} is outside of the project's folder.",
        expected="a file in or below the project's folder",
        found=str(file),
        why="A setting in a pull request must not be able to read any file of this machine.",
        fix="Move the policies into the project's folder.",
    )


def _build_policies(raw: RawDocument) -> Iterator[Policy]:
    for index, item in enumerate(raw.data["policies"]):
        ((key, options),) = item.items()
        options = options or {}
        yield Policy(
            rule=_RULES[key](options),
            key=key,
            at=raw.location(("policies", index, key), at_key=True) or Location(raw.file),
            severity=Severity(options.get("severity", Severity.ERROR.value)),
            message=options.get("message", ""),
            applications=options.get("applications"),
        )


def _build_naming(of: Named) -> Callable[[Options], PolicyRule]:
    return lambda options: Naming(of, options["pattern"])


def _topic_classes(options: Options) -> frozenset[TopicClass]:
    return frozenset(map(TopicClass, options["kinds"])) if "kinds" in options else EVERY_CLASS


def _build_bounded(
    make: Callable[[Bounds, frozenset[TopicClass]], PolicyRule],
) -> Callable[[Options], PolicyRule]:
    return lambda options: make(Bounds(options.get("min"), options.get("max")), _topic_classes(options))


def _build_retention(options: Options) -> PolicyRule:
    return Retention(
        Bounds(read_duration(options, "min"), read_duration(options, "max")), _topic_classes(options)
    )


def _topic_config(options: Options) -> PolicyRule:
    required = {
        key: None if value is None else broker_text(key, config_text(value))
        for key, value in options.get("require", {}).items()
    }
    return TopicConfig(required, tuple(options.get("forbid", ())), _topic_classes(options))


def _blast_radius(options: Options) -> PolicyRule:
    return BlastRadius({effect: options[effect.value] for effect in Effect if effect.value in options})


def _build_drift(options: Options) -> PolicyRule:
    return DriftTolerance(
        tuple(options.get("ignoreSettings", ())),
        Severity(options.get("failOn", Severity.INFO.value)),
        options.get("tolerated", 0),
        _topic_classes(options),
    )


_RULES: dict[str, Callable[[Options], PolicyRule]] = {
    **{named.value: _build_naming(named) for named in Named},
    "topicPartitions": _build_bounded(TopicPartitions),
    "applicationPartitions": _build_bounded(ApplicationPartitions),
    "replicationFactor": _build_bounded(ReplicationFactor),
    "minInsyncReplicas": _build_bounded(MinInsyncReplicas),
    "retention": _build_retention,
    "topicConfig": _topic_config,
    "namedResources": lambda _: NamedResources(),
    "blastRadius": _blast_radius,
    "drift": _build_drift,
}


def _ineffective_policies(raw: RawDocument) -> Iterator[Problem]:
    """Yield problems of policies that fit the schema and cannot be checked."""
    for index, item in enumerate(raw.data["policies"]):
        ((key, options),) = item.items()
        path: tuple[PathPart, ...] = ("policies", index, key)
        for name in ("pattern", "applications"):
            if name in (options or {}):
                yield from _untranslatable_pattern(raw, (*path, name), options[name])
        if key in _LIMITED and not set(options or {}) & _LIMITED[key]:
            yield _no_limit(raw, path, sorted(_LIMITED[key]))
        yield from _contradicting_bounds(raw, path, options or {})


_BOUNDS = {"min", "max"}
_LIMITED: dict[str, set[str]] = {
    "topicPartitions": _BOUNDS,
    "applicationPartitions": _BOUNDS,
    "replicationFactor": _BOUNDS,
    "minInsyncReplicas": _BOUNDS,
    "retention": _BOUNDS,
    "topicConfig": {"require", "forbid"},
    "blastRadius": {effect.value for effect in Effect},
    "drift": {"ignoreSettings", "failOn", "tolerated"},
}
"""Keys of which a policy must have at least one."""


def _untranslatable_pattern(raw: RawDocument, path: tuple[PathPart, ...], pattern: str) -> Iterator[Problem]:
    try:
        JavaPattern(pattern).matches("a" * 249)
    except UntranslatablePatternError as reason:
        yield _invalid_policy(
            raw,
            path,
            f"The pattern cannot be evaluated: {reason}.",
            expected="a Java regular expression without back references and similar constructs",
            found=f"`{pattern}`",
            fix="Rewrite the pattern without this construct.",
        )


def _no_limit(raw: RawDocument, path: tuple[PathPart, ...], keys: Sequence[str]) -> Problem:
    listed = " or ".join(f"`{key}`" for key in keys)
    return _invalid_policy(
        raw,
        path,
        f"`{path[-1]}` limits nothing.",
        expected=listed,
        found="none of them",
        fix=f"Add {listed}.",
    )


def _contradicting_bounds(
    raw: RawDocument, path: tuple[PathPart, ...], options: dict[str, Any]
) -> Iterator[Problem]:
    least, most = (read_duration(options, key) for key in ("min", "max"))
    if least is not None and most is not None and least > most:
        yield _invalid_policy(
            raw,
            (*path, "min"),
            f"No value is both {options['min']} or more and {options['max']} or less.",
            expected="`min` at most `max`",
            found=f"{options['min']} and {options['max']}",
            fix="Swap them, or correct one.",
        )
    for key in sorted(set(options.get("require") or ()) & set(options.get("forbid") or ())):
        yield _invalid_policy(
            raw,
            (*path, "forbid"),
            f"The setting {key} is required and forbidden at once.",
            expected="one of the two",
            found="both",
            fix="Remove one.",
        )


def _invalid_policy(
    raw: RawDocument, path: tuple[PathPart, ...], summary: str, *, expected: str, found: str, fix: str
) -> Problem:
    return Problem(
        code=ProblemCode.SCHEMA_VIOLATION,
        summary=summary,
        expected=expected,
        found=found,
        why="Such a policy would check nothing.",
        fix=fix,
        location=raw.location(path) or Location(raw.file),
    )


def _empty_file(file: str) -> Problem:
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary="The file contains no policies.",
        expected="a file of policies",
        found="only whitespace and comments",
        why=POLICY_FILE.why_unreadable,
        fix="Declare policies, or remove the file from the command or the stack.",
        location=Location(file),
    )
