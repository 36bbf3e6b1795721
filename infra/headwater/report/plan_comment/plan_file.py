"""The output of `headwater plan --format json`."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from headwater.model.problems import Severity
from headwater.planner import AclActionKind, ActionKind
from headwater.report.plan_comment.preview import Preview, Step
from headwater.report.plan_json import VERSION, values_digest

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
_GRANTING = (AclActionKind.GRANT.value, AclActionKind.RESTORE.value, AclActionKind.ADOPT.value)


def read_plan(text: str) -> Preview:
    """Read the JSON. Its digest is computed again, so that the comment names the plan that it shows.

    Raises:
        ValueError: The text is not a plan of version 1.
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
            steps=tuple(_steps(applications)),
            errors=_texts(document, Severity.ERROR),
            warnings=_texts(document, Severity.WARNING),
            texts={id_: text.partition("\n\n")[2] for id_, text in document["texts"].items()},
            recreated=actions[ActionKind.RECREATE.value],
            reconfigured=actions[ActionKind.RECONFIGURE.value],
            granted_acls=sum(acls[kind] for kind in _GRANTING),
            revoked_acls=acls[AclActionKind.REVOKE.value],
            risks=tuple(f"{risk['topic']}: {risk['text']}" for risk in document["risks"]),
            digest=values_digest(values),
        )
    except (AttributeError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from error


def _steps(applications: Mapping[str, Any]) -> Iterator[Step]:
    for id_, part in applications.items():
        for name, topic in part["topics"].items():
            operation, live = _OPERATIONS.get(topic["action"]), topic["live"]
            if operation is None or topic["action"] == ActionKind.RECONFIGURE.value:
                continue
            before = int(live["partitions"]) if live else None
            yield Step(str(name), str(id_), operation, before, int(topic["partitions"]))


def _texts(document: Mapping[str, Any], severity: Severity) -> tuple[str, ...]:
    texts = (str(each["text"]) for each in document["problems"] if each["severity"] == severity.value)
    return tuple(dict.fromkeys(texts))
