"""What one stack is told: which cluster, which documents, which limits."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import attrs

from infra.apply.setup_switches import switched
from infra.apply.stack_config import StackConfig
from infra.model.policies import BlastRadius, Effect, Policy
from infra.model.problems import Location, Problem, ProblemCode, ProblemsError, Severity, errors
from infra.model.topology import TopologyDocument
from infra.observe import Connection
from infra.planner import PlanPolicy
from infra.spec import load_documents
from infra.spec.files import find
from infra.spec.policies import load_policies

# Key → the environment variable that says the same (`infra.observe.environment`).
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
_LISTS = ("bootstrapServers", "saslOauthScopes")
_LIMITS = {"maxNewTopics": Effect.CREATED_TOPICS, "maxAddedPartitions": Effect.ADDED_PARTITIONS}
_OTHERS = ("documents", "clusterId", *_LIMITS, "policies", "setup")
_DOCUMENTS = ("topologies",)
_HERE = Path()


@attrs.frozen(kw_only=True)
class StackSettings:
    """`documents` are those that could be read. Nothing is registered if a problem is an error."""

    connection: Connection | None
    documents: tuple[TopologyDocument, ...]
    policy: PlanPolicy
    problems: tuple[Problem, ...] = ()
    are_documents_complete: bool = True
    """Whether every file could be read: else an application without a document may have a faulty one."""


def stack_settings(
    values: Mapping[str, str],
    *,
    secrets: Collection[str] = (),
    environment: Mapping[str, str],
    file: str = "Pulumi.yaml",
) -> StackSettings:
    """Read a stack's settings and its documents; raises nothing.

    `values` are the stack's keys without their namespace, `secrets` those of them that are encrypted, `file`
    is where they stand. What the stack does not say about the connection is taken from `environment`.
    """
    config = stack_config(values, secrets=secrets, file=file)
    paths = [Path(path) for path in config.texts("documents") or _DOCUMENTS]
    empty = [path for path in paths if path.is_dir() and not find([path])[0]]
    loaded = load_documents([path for path in paths if path not in empty])
    connection = _connection(config, environment)
    policy, in_policies = plan_policy(config)
    documents = switched(loaded.documents, config)
    return StackSettings(
        connection=connection,
        documents=documents,
        policy=policy,
        problems=(*config.problems, *in_policies, *loaded.problems, *map(_no_documents, empty)),
        are_documents_complete=not errors(loaded.problems),
    )


def stack_config(values: Mapping[str, str], *, secrets: Collection[str], file: str) -> StackConfig:
    """Return access to a stack's settings; what is none becomes a problem."""
    config = StackConfig(values, secrets=secrets, file=file)
    config.check_keys((*_CONNECTION, *_OTHERS))
    return config


def plan_policy(config: StackConfig, folder: Path = _HERE) -> tuple[PlanPolicy, tuple[Problem, ...]]:
    """Return what a stack allows, and what is wrong with its policy files; `folder` is the project's."""
    declared = load_policies([folder / path for path in config.texts("policies")])
    policies = (*_limits(config), *declared.policies)
    return PlanPolicy(cluster_id=config.text("clusterId"), policies=policies), declared.problems


def _limits(config: StackConfig) -> Iterator[Policy]:
    """The limits that a stack sets by keys of its own are policies like those of a file."""
    for key, effect in _LIMITS.items():
        limit = config.count(key)
        if limit is not None:
            at = Location(config.file, pointer=f"/config/headwater:{key}")
            yield Policy(rule=BlastRadius({effect: limit}), key=f"headwater:{key}", at=at)


def _no_documents(folder: Path) -> Problem:
    """Not an error: the last application of a stack may have been let go of."""
    return Problem(
        code=ProblemCode.UNREADABLE_DOCUMENT,
        summary=f"There is no topology document in {folder}.",
        expected="*.yaml, *.yml or *.json",
        found="an empty folder",
        why="The stack has no application.",
        fix="Put documents there, or name other places in headwater:documents.",
        location=Location(str(folder)),
        severity=Severity.WARNING,
    )


def _connection(config: StackConfig, environment: Mapping[str, str]) -> Connection | None:
    said = {variable: _text(config, key) for key, variable in _CONNECTION.items()}
    try:
        return Connection.from_environment(
            {**environment, **{variable: text for variable, text in said.items() if text is not None}}
        )
    except ProblemsError as error:
        config.problems.extend(map(_in_terms_of_keys, error.problems))
        return None


def _text(config: StackConfig, key: str) -> str | None:
    return (",".join(config.texts(key)) or None) if key in _LISTS else config.text(key)


def _in_terms_of_keys(problem: Problem) -> Problem:
    """A person who wrote `headwater:caCert` does not know `HEADWATER_CA_CERT`."""
    summary, fix = problem.summary, problem.fix
    for key, variable in _CONNECTION.items():
        summary, fix = (text.replace(variable, f"headwater:{key}") for text in (summary, fix))
    return attrs.evolve(problem, summary=summary, fix=fix)
