"""What a comment is made of: the files of a plan, a preview and a drift."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from headwater.model.problems import Location, Severity
from headwater.planner import AclActionKind, ActionKind
from headwater.planner.drift import Finding, FindingKind
from headwater.report.plan_json import VERSION, values_digest
from headwater.report.plan_text import NOT_LISTED

_TOPIC = "kafka:index/topic:Topic"
_ACL = "kafka:index/acl:Acl"
_GRANTING_STEPS, _REVOKING = ("create", "import"), ("delete",)
_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING}
RISKS_HEAD = "Changes that can lose data or move keys:"
"""The first line of the message that lists them, one in a line."""
_ENDINGS = ("nothing was changed: ", "an unhandled error occurred: program exited")
"""The last messages of a refused program; they only count the problems logged before them."""
_PLAN_HEAD = re.compile(r"Plan for (?:1 application|[^\s:]+): .*\n\n(?P<application>[^\n:]+)")


@attrs.frozen
class Step:
    """The operation of Pulumi on one topic, `op`; partition counts are None if not known."""

    topic: str
    application: str
    op: str
    before: int | None
    after: int | None

    @property
    def added_partitions(self) -> int:
        """The number of partitions added to a topic that exists."""
        return max(0, (self.after or 0) - self.before) if self.op == "update" and self.before else 0


@attrs.frozen
class Preview:
    """What a Pulumi preview printed: the plan of a stack.

    `stack` is `project/stack`. `texts` is application id → the text of its plan. `recreated` and
    `reconfigured` are read from Headwater's messages, because Pulumi does not know them.
    """

    stack: str
    steps: tuple[Step, ...]
    errors: tuple[str, ...]
    warnings: tuple[str, ...]
    texts: Mapping[str, str]
    recreated: int = 0
    reconfigured: int = 0
    granted_acls: int = 0
    revoked_acls: int = 0
    risks: tuple[str, ...] = ()
    """The changes that can lose data or move keys, each with its topic, the worst first."""
    digest: str = ""
    """The digest of the plan; empty if it is not known."""


def read_preview(text: str) -> Preview:
    """Read the JSON of a preview, which other lines may precede; raises `ValueError` for another text."""
    start = re.search(r"^\{", text, re.MULTILINE)
    if start is None:
        raise ValueError("no JSON object")
    document, _ = json.JSONDecoder().raw_decode(text, start.start())
    if not isinstance(document.get("steps", []), list) or not document.keys() & {"steps", "diagnostics"}:
        raise ValueError("neither steps nor diagnostics")
    steps = document.get("steps") or []
    try:
        messages = [
            (str(each.get("severity", "")), _without_colors(str(each.get("message", ""))))
            for each in document.get("diagnostics") or ()
        ]
        heads = [
            message.partition("\n")[0]
            for _, message in messages
            if _PLAN_HEAD.match(message) or message.rstrip().endswith(NOT_LISTED)
        ]
        return Preview(
            stack=_stack_of(steps),
            steps=tuple(_steps_of_preview(steps)),
            errors=_with_severity(messages, Severity.ERROR),
            warnings=_with_severity(messages, Severity.WARNING),
            texts={
                found["application"]: message.partition("\n\n")[2]
                for severity, message in messages
                if severity not in _SEVERITIES and (found := _PLAN_HEAD.match(message))
            },
            recreated=_number_to(heads, ActionKind.RECREATE.value),
            reconfigured=_number_to(heads, ActionKind.RECONFIGURE.value),
            risks=tuple(
                line.strip()
                for _, message in messages
                if message.startswith(RISKS_HEAD)
                for line in message.splitlines()[1:]
            ),
            granted_acls=_count_acls(steps, _GRANTING_STEPS),
            revoked_acls=_count_acls(steps, _REVOKING),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _steps_of_preview(steps: Sequence[Mapping[str, Any]]) -> Iterator[Step]:
    for step in steps:
        urn = str(step["urn"])
        if step["op"] == "same" or _kind_of(urn) != _TOPIC:
            continue
        old, new = step.get("oldState") or {}, step.get("newState") or {}
        yield Step(
            topic=_split_urn(urn)[3],
            application=_split_urn(str((new or old).get("parent") or ""))[3],
            op=str(step["op"]),
            before=_partitions_of(old, "outputs"),
            after=_partitions_of(new, "inputs"),
        )


def _count_acls(steps: Sequence[Mapping[str, Any]], ops: Sequence[str]) -> int:
    return sum(step["op"] in ops and _kind_of(str(step["urn"])) == _ACL for step in steps)


def _kind_of(urn: str) -> str:
    return _split_urn(urn)[2].rpartition("$")[2]


def _with_severity(messages: Sequence[tuple[str, str]], severity: Severity) -> tuple[str, ...]:
    """Return the messages of a severity, each once, without messages of `_ENDINGS`."""
    texts = (
        text for name, text in messages if _SEVERITIES.get(name) is severity and not text.startswith(_ENDINGS)
    )
    return tuple(dict.fromkeys(texts))


def _number_to(heads: Sequence[str], kind: str) -> int:
    found = (re.search(rf"([\d,]+) to {kind}\b", head) for head in heads)
    return sum(int(number[1].replace(",", "")) for number in found if number)


def _without_colors(message: str) -> str:
    return re.sub(r"^(?:error|warning|info): ", "", re.sub(r"\x1b\[[0-9;]*m", "", message)).rstrip()


def _partitions_of(state: Mapping[str, Any], where: str) -> int | None:
    number = (state.get(where) or {}).get("partitions")
    return int(number) if isinstance(number, (int, float)) else None


def _stack_of(steps: Sequence[Mapping[str, Any]]) -> str:
    _, stack, project = ("", *_split_urn(str(steps[0]["urn"]))[:2]) if steps else ("", "", "")
    return "/".join(part for part in (project, stack) if part)


def _split_urn(urn: str) -> tuple[str, str, str, str]:
    """Return stack, project, type and name of `urn:pulumi:stack::project::type::name`."""
    parts = urn.removeprefix("urn:pulumi:").split("::", maxsplit=3)
    stack, project, type_, name = (*parts, "", "", "", "")[:4]
    return stack, project, type_, name


_OPERATIONS = {
    ActionKind.CREATE.value: "create",
    ActionKind.RECREATE.value: "create",
    ActionKind.ADOPT.value: "import",
    ActionKind.EXPAND.value: "update",
    ActionKind.RECONFIGURE.value: "update",
    ActionKind.DELETE.value: "delete",
    ActionKind.RETIRE.value: "update",
    ActionKind.RELEASE.value: "update",
}
_GRANTING_ACTIONS = (AclActionKind.GRANT.value, AclActionKind.RESTORE.value, AclActionKind.ADOPT.value)


def read_plan(text: str) -> Preview:
    """Read the JSON of a plan of version 1; raises `ValueError` for another text.

    Its digest is computed again, so that the comment names the plan that it shows.
    """
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise ValueError(f"version {document['version']}")
        values = document["plan"]
        applications: Mapping[str, Any] = values["applications"]
        actions = Counter(
            topic["action"] for part in applications.values() for topic in part["topics"].values()
        )
        acls = Counter(acl["action"] for part in applications.values() for acl in part["acls"])
        return Preview(
            stack="/".join(str(document["stack"]).split("/")[-2:]),
            steps=tuple(_steps_of_plan(applications)),
            errors=_texts_of(document, Severity.ERROR),
            warnings=_texts_of(document, Severity.WARNING),
            texts={id_: text.partition("\n\n")[2] for id_, text in document["texts"].items()},
            recreated=actions[ActionKind.RECREATE.value],
            reconfigured=actions[ActionKind.RECONFIGURE.value],
            granted_acls=sum(acls[kind] for kind in _GRANTING_ACTIONS),
            revoked_acls=acls[AclActionKind.REVOKE.value],
            risks=tuple(f"{risk['topic']}: {risk['text']}" for risk in document["risks"]),
            digest=values_digest(values),
        )
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _steps_of_plan(applications: Mapping[str, Any]) -> Iterator[Step]:
    for id_, part in applications.items():
        for name, topic in part["topics"].items():
            operation, live = _OPERATIONS.get(topic["action"]), topic["live"]
            if operation is None or topic["action"] == ActionKind.RECONFIGURE.value:
                continue
            before = int(live["partitions"]) if live else None
            yield Step(str(name), str(id_), operation, before, int(topic["partitions"]))


def _texts_of(document: Mapping[str, Any], severity: Severity) -> tuple[str, ...]:
    texts = (str(each["text"]) for each in document["problems"] if each["severity"] == severity.value)
    return tuple(dict.fromkeys(texts))


@attrs.frozen
class ReportedDrift:
    """What `headwater drift` printed as JSON.

    `findings` and `graphs` (Mermaid texts) are by application id; `problems` are the summaries of problems.
    """

    findings: Mapping[str, tuple[Finding, ...]]
    graphs: Mapping[str, str]
    topics: int
    problems: tuple[str, ...] = ()


def read_drift(text: str) -> ReportedDrift:
    """Read the JSON of a drift report of version 1; raises `ValueError` for another text."""
    try:
        document = json.loads(text)
        if document["version"] != 1:
            raise ValueError(f"version {document['version']}")
        applications = document["applications"]
        return ReportedDrift(
            findings={
                str(each["applicationId"]): tuple(
                    _read_finding(str(each["applicationId"]), finding) for finding in each["findings"]
                )
                for each in applications
            },
            graphs={str(each["applicationId"]): str(each["mermaid"]) for each in applications},
            topics=int(document["summary"]["topics"]),
            problems=tuple(str(problem["summary"]) for problem in document["problems"]),
        )
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _read_finding(application: str, finding: Mapping[str, Any]) -> Finding:
    at = finding["location"]
    return Finding(
        kind=FindingKind(finding["kind"]),
        severity=Severity(finding["severity"]),
        application=application,
        topic=None if finding["topic"] is None else str(finding["topic"]),
        what=str(finding["what"]),
        expected=str(finding["expected"]),
        found=str(finding["found"]),
        why=str(finding["why"]),
        fix=str(finding["fix"]),
        location=Location(str(at["file"]), int(at["line"]), int(at["column"])) if at else None,
        counts=bool(finding.get("counts", True)),  # reports of earlier versions have no tolerated drift
    )
