"""Permissions as text, as JSON, and as `kafka-acls.sh` commands that grant them."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

import attrs

from headwater.model.acls import ANY_NAME, RESOURCE_OPTIONS, Pattern, Permission, ResourceKind
from headwater.model.problems import Problem
from headwater.planner.acls import Need
from headwater.planner.phrases import counted
from headwater.report.compiled import problem_json
from headwater.report.markdown import printable

_KIND_NAMES = {
    ResourceKind.TOPIC: "topic",
    ResourceKind.GROUP: "group",
    ResourceKind.TRANSACTIONAL_ID: "transactional id",
    ResourceKind.CLUSTER: "cluster",
}


@attrs.frozen
class Grants:
    """The permissions that an application (`holder` is its id) or Headwater needs for `purpose`.

    `principals` is empty while no principal is named.
    """

    holder: str
    purpose: str
    principals: tuple[str, ...]
    hosts: tuple[str, ...]
    needs: tuple[Need, ...]

    @property
    def by_resource(self) -> Iterator[Sequence[Need]]:
        """Yield the needs of each resource together."""
        for _, group in groupby(
            self.needs, key=attrgetter("permission.kind", "permission.name", "permission.pattern")
        ):
            yield tuple(group)


def acls_text(grants: Iterable[Grants]) -> str:
    """Return a section for each holder: the principals, then a line for each resource."""
    return "\n\n".join("\n".join(_grant_lines(part)) for part in grants)


def acls_json(grants: Iterable[Grants], problems: Sequence[Problem] = ()) -> dict[str, Any]:
    """Return `{"grants": [{"holder", "purpose", "principals", "hosts", "permissions"}], "problems"}`."""
    return {
        "grants": [
            {
                "holder": part.holder,
                "purpose": part.purpose,
                "principals": list(part.principals),
                "hosts": list(part.hosts),
                "permissions": [_permission_json(need) for need in part.needs],
            }
            for part in grants
        ],
        "problems": [problem_json(problem) for problem in problems],
    }


@attrs.frozen
class Target:
    """How `kafka-acls.sh` connects: its server, and a file with the settings of the client."""

    server: str | None = None
    config: str | None = None

    @property
    def options(self) -> Sequence[str]:
        """The options. Without a server, BROKER stands for it."""
        config = ["--command-config", self.config] if self.config else []
        return ["--bootstrap-server", self.server or _BROKER, *config]


_BROKER = "BROKER"


def acls_commands(grants: Iterable[Grants], target: Target) -> str:
    """Return a shell script: one `kafka-acls.sh` command for each resource, on the cluster of `target`."""
    lines = ["#!/bin/sh", "set -eu", ""]
    for part in grants:
        lines += [f"# {re.sub(r'[^ -~]', '?', f'{part.holder}, {part.purpose}')}"]
        lines += _command_lines(part, target)
        lines += [""]
    return "\n".join(lines)


def _grant_lines(grants: Grants) -> Iterator[str]:
    yield printable(f"{grants.holder}, {grants.purpose}: {_principals_of(grants)}")
    rows = [_row_of(needs) for needs in grants.by_resource]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] if rows else []
    for kind, name, operations, reason in rows:
        cells = (f"{text:{width}}" for text, width in zip((kind, name, operations), widths, strict=True))
        yield printable(f"  {'  '.join(cells)}  {reason}")


def _row_of(needs: Sequence[Need]) -> tuple[str, str, str, str]:
    permission = needs[0].permission
    reasons = dict.fromkeys(need.reason for need in needs)
    operations = ", ".join(need.permission.operation for need in needs)
    name = permission.name + (ANY_NAME if permission.pattern is Pattern.PREFIXED else "")
    return _KIND_NAMES[permission.kind], name, operations, "; ".join(reasons)


def _principals_of(grants: Grants) -> str:
    number = counted(len(grants.needs), "permission")
    if not grants.principals:
        return f"{number}, no principal named"
    hosts = f" from {', '.join(grants.hosts)}" if _hosts_of(grants) else ""
    return f"{number} for {', '.join(grants.principals)}{hosts}"


def _hosts_of(grants: Grants) -> Sequence[str]:
    return () if grants.hosts == (ANY_NAME,) else grants.hosts


def _permission_json(need: Need) -> dict[str, str]:
    return {
        "resourceType": need.permission.kind.value,
        "resourceName": need.permission.name,
        "patternType": need.permission.pattern.value,
        "operation": need.permission.operation.value,
        "reason": need.reason,
    }


def _command_lines(grants: Grants, target: Target) -> Iterator[str]:
    for needs in grants.by_resource:
        words = ["kafka-acls.sh", *target.options, "--add"]
        words += [word for name in grants.principals for word in ("--allow-principal", name)]
        words += [word for host in _hosts_of(grants) for word in ("--allow-host", host)]
        words += [word for need in needs for word in ("--operation", need.permission.operation.value)]
        yield shlex.join([*words, *_resource_options(needs[0].permission)])


def _resource_options(permission: Permission) -> Sequence[str]:
    if permission.kind is ResourceKind.CLUSTER:
        return [RESOURCE_OPTIONS[permission.kind]]
    pattern = ["--resource-pattern-type", "prefixed"] if permission.pattern is Pattern.PREFIXED else []
    return [RESOURCE_OPTIONS[permission.kind], permission.name, *pattern]
