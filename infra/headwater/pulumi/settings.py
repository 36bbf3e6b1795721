"""The settings of a stack: its cluster, documents, limits, and the switches of `headwater:setup`."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from headwater.kafka import Connection
from headwater.model.acls import AclDeclaration
from headwater.model.policies import BlastRadius, Effect, Policy
from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity, errors
from headwater.model.topology import Application, Lifecycle, StackSwitch, TopologyDocument
from headwater.planner import PlanPolicy
from headwater.pulumi.stack_config import ResourceInputs, StackConfig
from headwater.spec import Documents, load_documents
from headwater.spec.files import find_files
from headwater.spec.policies import load_policies
from headwater.spec.scalars import read_duration
from headwater.spec.schema import document_schema, matches_pattern

# Key → the environment variable for the same setting (`headwater.kafka.connection`).
_CONNECTION = {
    "bootstrapServers": "HEADWATER_BOOTSTRAP_SERVERS",
    "securityProtocol": "HEADWATER_SECURITY_PROTOCOL",
    "saslMechanism": "HEADWATER_SASL_MECHANISM",
    "saslUsername": "HEADWATER_SASL_USERNAME",
    "saslPassword": "HEADWATER_SASL_PASSWORD",
    "saslTokenUrl": "HEADWATER_SASL_TOKEN_URL",
    "saslOauthScopes": "HEADWATER_SASL_OAUTH_SCOPES",
    "saslAwsRegion": "HEADWATER_SASL_AWS_REGION",
    "caCert": "HEADWATER_CA_CERT",
    "clientCert": "HEADWATER_CLIENT_CERT",
    "clientKey": "HEADWATER_CLIENT_KEY",
    "clientKeyPassphrase": "HEADWATER_CLIENT_KEY_PASSPHRASE",
    "tlsEnabled": "HEADWATER_ENABLE_TLS",
    "skipTlsVerify": "HEADWATER_SKIP_VERIFY",
}
_SECRET_ARGUMENTS = {
    "saslPassword": "sasl_password",
    "clientKey": "client_key",
    "clientKeyPassphrase": "client_key_passphrase",
}
_LISTS = ("bootstrapServers", "saslOauthScopes")
_LIMITS = {"maxNewTopics": Effect.CREATED_TOPICS, "maxAddedPartitions": Effect.ADDED_PARTITIONS}
_OTHERS = ("documents", "clusterId", *_LIMITS, "policies", "ownership", "setup")
SETTINGS = (*_CONNECTION, *_OTHERS)
"""All keys of a stack, without their namespace."""
_STACK_FILE = re.compile(r"Pulumi\.([\w.-]+)\.yaml")
_OWNERSHIP = ("recorded", "acls", "none")
_DOCUMENTS = ("topologies",)
"""What a stack reads if its settings name no documents."""
_HERE = Path()
_NO_INPUTS = ResourceInputs()
APPROVED_PLAN = "HEADWATER_APPROVED_PLAN"
"""The variable with the digest of the plan that was approved, or with the path of its JSON."""
_FLAGS = {
    "adopt": "adopt",
    "ifIncomplete": "if_incomplete",
    "reinitialize": "reinitialize",
    "takeOver": "take_over",
    "allowUnsafeExpansion": "allow_unsafe_expansion",
}
_SWITCHES = (*_FLAGS, "timeout", "lifecycle", "principals")


@attrs.frozen(kw_only=True)
class StackSettings:
    """The settings of a stack and its readable documents. If a problem is an error, nothing is registered."""

    connection: Connection | None
    documents: tuple[TopologyDocument, ...]
    policy: PlanPolicy
    problems: tuple[Problem, ...] = ()
    secret_variables: Mapping[str, str] = attrs.field(factory=dict)
    """Secrets that are not in the stack: argument of the Pulumi provider → variable of this process."""
    approved_plan: str | None = None
    """The digest of the only plan that may be made, or the file of that plan; None = any plan."""
    has_ownership_records: bool = True
    """Whether to read and write ownership records (`headwater:ownership`)."""


def stack_settings(
    values: Mapping[str, str],
    *,
    secrets: Collection[str] = (),
    environment: Mapping[str, str],
    file: str = "Pulumi.yaml",
    inputs: ResourceInputs = _NO_INPUTS,
) -> StackSettings:
    """Return a stack's settings and documents; errors are in `problems`.

    Args:
        values: The stack's keys without namespace, and their values.
        secrets: The keys that are encrypted.
        environment: The source of connection settings that the stack does not have.
        file: The file of the settings, for locations.
        inputs: Settings that the program passes as inputs of a resource; they replace the stack's.
    """
    config = stack_config(values, secrets=secrets, file=file, inputs=inputs)
    loaded = load_stack_documents(config)
    connection = _read_connection(config, environment)
    policy, policy_problems = plan_policy(config)
    documents = with_switches(loaded.documents, config)
    has_ownership_records = has_ownership(config)
    return StackSettings(
        connection=connection,
        documents=documents,
        policy=attrs.evolve(policy, are_documents_complete=not errors(loaded.problems)),
        problems=(*config.problems, *policy_problems, *loaded.problems),
        secret_variables=_secret_variables(config, environment),
        approved_plan=environment.get(APPROVED_PLAN),
        has_ownership_records=has_ownership_records,
    )


def load_stack_documents(config: StackConfig, folder: Path = _HERE) -> Documents:
    """Return the documents of a stack; `folder` is the folder of Pulumi.yaml.

    Errors are in `problems`. A folder without documents is a warning.
    """
    paths = [folder / path for path in config.texts("documents") or _DOCUMENTS]
    empty = [path for path in paths if path.is_dir() and not find_files([path])[0]]
    loaded = load_documents([path for path in paths if path not in empty])
    return attrs.evolve(loaded, problems=(*loaded.problems, *map(_no_documents, empty)))


def stack_config(
    values: Mapping[str, str], *, secrets: Collection[str], file: str, inputs: ResourceInputs = _NO_INPUTS
) -> StackConfig:
    """Return typed access to a stack's settings; unknown keys are problems."""
    config = StackConfig(values, secrets=secrets, file=file, inputs=inputs)
    config.check_keys(SETTINGS)
    return config


def stack_connection(config: StackConfig, environment: Mapping[str, str]) -> Connection:
    """Return the connection of a stack; settings that it does not have are read from `environment`.

    Raises:
        ProblemsError: InvalidConfig for settings that are wrong or missing.
    """
    texts = {key: text for key in _CONNECTION if (text := _read_text(config, key)) is not None}
    return Connection.from_environment(
        {**environment, **{_CONNECTION[key]: text for key, text in texts.items()}},
        names={_CONNECTION[key]: config.label(key) for key in texts},
    )


def plan_policy(config: StackConfig, folder: Path = _HERE) -> tuple[PlanPolicy, tuple[Problem, ...]]:
    """Return a stack's limits and policies, and the problems of its policy files; `folder` is their base."""
    declared = load_policies([Path(path) for path in config.texts("policies")], folder)
    policies = (*_limit_policies(config), *declared.policies)
    policy = PlanPolicy(
        cluster_id=config.text("clusterId"),
        policies=policies,
        configures_records=config.text("ownership") != "acls",
    )
    return policy, declared.problems


def has_ownership(config: StackConfig) -> bool:
    """Return whether the stack has ownership records (`headwater:ownership`)."""
    choice = config.text("ownership") or _OWNERSHIP[0]
    if choice not in _OWNERSHIP:
        config.problems.append(config.invalid("ownership", f"one of {', '.join(_OWNERSHIP)}", choice))
    return choice != "none"


def with_switches(
    documents: Sequence[TopologyDocument], config: StackConfig, *, are_all: bool = True
) -> tuple[TopologyDocument, ...]:
    """Return the documents with the switches of `headwater:setup` applied; problems are added to `config`.

    `are_all` says that these are all documents of the stack, so that a switch for any other is an error.
    """
    switches = config.mapping("setup")
    ids = {document.application.id for document in documents}
    for id_ in sorted(switches.keys() - ids) if are_all else ():
        config.problems.append(config.unknown(f"setup.{id_}", ids, what="an application of this stack"))
    return tuple(
        _apply_switches(document, switches.get(document.application.id), config) for document in documents
    )


def _limit_policies(config: StackConfig) -> Iterator[Policy]:
    """Yield a policy for each limit that the stack sets with its own key."""
    for key, effect in _LIMITS.items():
        limit = config.count(key)
        if limit is not None:
            yield Policy(rule=BlastRadius({effect: limit}), key=config.label(key), at=config.location_of(key))


def _no_documents(folder: Path) -> Problem:
    """Return a warning, not an error: the last application of a stack may have been released."""
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"No topology documents found in {folder}.",
        expected="*.yaml, *.yml or *.json",
        found="an empty folder",
        why="The stack has no applications.",
        fix="Add documents to the folder, or set headwater:documents to other files or folders.",
        location=Location(str(folder)),
        severity=Severity.WARNING,
    )


def _read_connection(config: StackConfig, environment: Mapping[str, str]) -> Connection | None:
    try:
        return stack_connection(config, environment)
    except ProblemsError as error:
        config.problems.extend(error.problems)
        return None


def _secret_variables(config: StackConfig, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets that only the environment of this process has, with their variables."""
    found = {}
    for key, argument in _SECRET_ARGUMENTS.items():
        own = _CONNECTION[key]
        variable = own if environment.get(own) else own.replace("HEADWATER_", "KAFKA_")
        value = environment.get(variable)
        # The plugin gets the variables of this process; a program may pass other ones.
        if value and not config.text(key) and os.environ.get(variable) == value:
            found[argument] = variable
    return found


def _read_text(config: StackConfig, key: str) -> str | None:
    return (",".join(config.texts(key)) or None) if key in _LISTS else config.text(key)


def _apply_switches(document: TopologyDocument, switches: object, config: StackConfig) -> TopologyDocument:
    if switches is None:
        return document
    application = document.application
    key = f"setup.{application.id}"
    if not isinstance(switches, dict):
        config.problems.append(config.invalid(key, "a mapping", str(switches)))
        return document
    for unknown in sorted(switches.keys() - set(_SWITCHES)):
        config.problems.append(config.unknown(f"{key}.{unknown}", _SWITCHES, what="a setup option"))
    flags: dict[str, Any] = {
        _FLAGS[name]: _parse_flag(f"{key}.{name}", switches[name], config)
        for name in switches.keys() & _FLAGS
    }
    in_stack = {name: _stack_switch(application.id, name, config) for name in switches.keys() & _FLAGS}
    setup = attrs.evolve(application.setup, **flags, in_stack=in_stack)
    if "timeout" in switches:
        setup = attrs.evolve(setup, timeout_ms=_parse_timeout(f"{key}.timeout", switches["timeout"], config))
    lifecycle = _read_lifecycle(f"{key}.lifecycle", switches, config) or application.lifecycle
    acls = _read_acls(f"{key}.principals", application, switches, config)
    changed = attrs.evolve(application, setup=setup, lifecycle=lifecycle, acls=acls)
    return attrs.evolve(document, application=changed)


def _stack_switch(id_: str, name: str, config: StackConfig) -> StackSwitch:
    key = f"setup.{id_}.{name}"
    label = config.label(key)
    if label == key:
        removal = f"Remove `{label}` from the inputs of the resource."
    else:
        path = f'["{id_}"]' if "." in id_ else f".{id_}"  # `--path` splits a key at its dots
        # Another stack may be selected.
        stack = (
            f" --stack {file[1]}" if (file := _STACK_FILE.fullmatch(config.location_of("setup").file)) else ""
        )
        removal = f"Run `pulumi config rm{stack} --path 'headwater:setup{path}.{name}'`."
    return StackSwitch(label, config.location_of("setup"), removal)


def _parse_flag(key: str, value: object, config: StackConfig) -> bool:
    # `pulumi config set --path` stores true and false as booleans; older versions store texts.
    if value not in (True, False, "true", "false"):
        config.problems.append(config.invalid(key, "true or false", str(value)))
    return value in (True, "true")


def _parse_timeout(key: str, value: object, config: StackConfig) -> int:
    duration = read_duration(value) or 0
    if not duration:
        config.problems.append(config.invalid(key, "a duration such as 60s", str(value)))
    return duration


def _read_acls(
    key: str, application: Application, switches: Mapping[str, Any], config: StackConfig
) -> AclDeclaration | None:
    """Return the ACLs with the stack's principals; an empty list means no ACLs in this stack."""
    if "principals" not in switches:
        return application.acls
    names = switches["principals"]
    if not isinstance(names, list) or not all(_is_principal(name) for name in names):
        config.problems.append(config.invalid(key, "a list of principals such as User:orders", str(names)))
        return application.acls
    declared = application.acls or AclDeclaration((), application.at)
    return attrs.evolve(declared, principals=tuple(names)) if names else None


def _is_principal(name: object) -> bool:
    pattern = document_schema()["$defs"]["principal"]["pattern"]
    return isinstance(name, str) and matches_pattern(pattern, name)


def _read_lifecycle(key: str, switches: Mapping[str, Any], config: StackConfig) -> Lifecycle | None:
    if "lifecycle" not in switches:
        return None
    try:
        return Lifecycle(switches["lifecycle"])
    except ValueError:
        allowed = ", ".join(lifecycle.value for lifecycle in Lifecycle)
        config.problems.append(config.invalid(key, f"one of {allowed}", str(switches["lifecycle"])))
        return None
