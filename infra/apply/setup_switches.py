"""`headwater:setup`: what one stack asks for an application beyond, or instead of, its document."""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from infra.apply.stack_config import StackConfig
from infra.model.acls import AclDeclaration
from infra.model.topology import Application, Lifecycle, TopologyDocument
from infra.spec.durations import read_duration
from infra.spec.schema import document_schema, matches

_FLAGS = {
    "adopt": "adopt",
    "ifIncomplete": "if_incomplete",
    "reinitialize": "reinitialize",
    "allowUnsafeExpansion": "allow_unsafe_expansion",
}
_SWITCHES = (*_FLAGS, "timeout", "lifecycle", "principals")


def switched(
    documents: Sequence[TopologyDocument], config: StackConfig, *, are_all: bool = True
) -> tuple[TopologyDocument, ...]:
    """Return the documents with the stack's switches applied; problems go to `config`.

    Unless the documents `are_all` of the stack, there may be switches for others.
    """
    switches = config.mapping("setup")
    ids = {document.application.id for document in documents}
    for id_ in sorted(switches.keys() - ids) if are_all else ():
        config.problems.append(config.unknown(f"setup.{id_}", ids, what="an application of this stack"))
    return tuple(_switched(document, switches.get(document.application.id), config) for document in documents)


def _switched(document: TopologyDocument, switches: object, config: StackConfig) -> TopologyDocument:
    if switches is None:
        return document
    application = document.application
    key = f"setup.{application.id}"
    if not isinstance(switches, dict):
        config.problems.append(config.unfit(key, "a mapping", str(switches)))
        return document
    for unknown in sorted(switches.keys() - set(_SWITCHES)):
        config.problems.append(config.unknown(f"{key}.{unknown}", _SWITCHES, what="a switch"))
    flags = {
        _FLAGS[name]: _flag(f"{key}.{name}", switches[name], config) for name in switches.keys() & _FLAGS
    }
    setup = attrs.evolve(application.setup, **flags)
    if "timeout" in switches:
        setup = attrs.evolve(setup, timeout_ms=_timeout(f"{key}.timeout", switches["timeout"], config))
    lifecycle = _lifecycle(f"{key}.lifecycle", switches, config) or application.lifecycle
    acls = _acls(f"{key}.principals", application, switches, config)
    changed = attrs.evolve(application, setup=setup, lifecycle=lifecycle, acls=acls)
    return attrs.evolve(document, application=changed)


def _flag(key: str, value: object, config: StackConfig) -> bool:
    # `pulumi config set --path` stores a boolean for true and false, older versions of it a text.
    if value not in (True, False, "true", "false"):
        config.problems.append(config.unfit(key, "true or false", str(value)))
    return value in (True, "true")


def _timeout(key: str, value: object, config: StackConfig) -> int:
    duration = read_duration(value) or 0
    if not duration:
        config.problems.append(config.unfit(key, "a duration such as 60s", str(value)))
    return duration


def _acls(
    key: str, application: Application, switches: Mapping[str, Any], config: StackConfig
) -> AclDeclaration | None:
    """Users differ from cluster to cluster; nobody = no ACLs in this stack."""
    if "principals" not in switches:
        return application.acls
    names = switches["principals"]
    if not isinstance(names, list) or not all(_is_principal(name) for name in names):
        config.problems.append(config.unfit(key, "a list of principals such as User:orders", str(names)))
        return application.acls
    declared = application.acls or AclDeclaration((), application.at)
    return attrs.evolve(declared, principals=tuple(names)) if names else None


def _is_principal(name: object) -> bool:
    pattern = document_schema()["$defs"]["principal"]["pattern"]
    return isinstance(name, str) and matches(pattern, name)


def _lifecycle(key: str, switches: Mapping[str, Any], config: StackConfig) -> Lifecycle | None:
    if "lifecycle" not in switches:
        return None
    try:
        return Lifecycle(switches["lifecycle"])
    except ValueError:
        allowed = ", ".join(lifecycle.value for lifecycle in Lifecycle)
        config.problems.append(config.unfit(key, f"one of {allowed}", str(switches["lifecycle"])))
        return None
