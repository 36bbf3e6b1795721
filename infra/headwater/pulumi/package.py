"""The Pulumi package `headwater`: its schema, and the plugin that programs in any language use.

The plugin is the program `pulumi-resource-headwater`. The engine asks it for the schema, from which Pulumi
generates SDKs, and lets it construct the component `headwater:index:Applications` during a run.
"""

import json
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import pulumi
from pulumi.errors import InputPropertiesError
from pulumi.provider import ConstructResult, Provider, main
from pulumi.runtime.rpc import UNKNOWN

from headwater.pulumi.program import configured_settings, deploy, read_stack_state
from headwater.pulumi.stack_config import SECRETS, ResourceInputs

TOKEN = "headwater:index:Applications"  # noqa: S105 - a type token
_TEXT = {"type": "string"}
_TEXTS = {"type": "array", "items": _TEXT}
_COUNT = {"type": "integer"}
_FLAG = {"type": "boolean"}
_OPTIONS = {"type": "object", "additionalProperties": {"$ref": "pulumi.json#/Any"}}
_DEFAULT = "Default: the key `headwater:{key}` of the stack."
INPUTS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "documents": (_TEXTS, "Topology documents: files, patterns, or folders; relative to the program."),
    "bootstrapServers": (_TEXTS, "Brokers, `host:port`."),
    "clusterId": (_TEXT, "Id of the cluster of this stack; another cluster is an error."),
    "maxNewTopics": (_COUNT, "How many topics one run may create."),
    "maxAddedPartitions": (_COUNT, "How many partitions one run may add."),
    "policies": (_TEXTS, "Policy files, relative to the program."),
    "ownership": (
        _TEXT,
        "`none`: no check for other stacks; `acls`: the brokers refuse settings of its topic; or `recorded`.",
    ),
    "setup": (_OPTIONS, "Setup options of this stack, by application id."),
    "securityProtocol": (_TEXT, "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."),
    "saslMechanism": (_TEXT, "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER or AWS_MSK_IAM."),
    "saslUsername": (_TEXT, "The user; for OAUTHBEARER the id of the client."),
    "saslPassword": (_TEXT, "The password; for OAUTHBEARER the secret of the client."),
    "saslTokenUrl": (_TEXT, "The token endpoint of OAUTHBEARER."),
    "saslOauthScopes": (_TEXTS, "The scopes of OAUTHBEARER."),
    "saslAwsRegion": (_TEXT, "The region of AWS_MSK_IAM."),
    "caCert": (_TEXT, "CA certificates: a PEM text, or the path of a PEM file."),
    "clientCert": (_TEXT, "The certificate of the client: a PEM text, or the path of a PEM file."),
    "clientKey": (_TEXT, "The key of the client: a PEM text, or the path of a PEM file."),
    "clientKeyPassphrase": (_TEXT, "The passphrase of the key."),
    "tlsEnabled": (_FLAG, "Use TLS without setting a certificate."),
    "skipTlsVerify": (_FLAG, "Trust any server certificate; for tests only."),
}
"""Input → its type in the schema, and what it means: the settings of a stack (docs/operations.md)."""
_PARTITIONS = {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": _COUNT}}


def package_schema() -> dict[str, Any]:
    """Return the schema of the package, from which Pulumi generates SDKs."""
    inputs = {
        key: {
            **type_,
            "description": f"{meaning} {_DEFAULT.format(key=key)}",
            **({"secret": True} if key in SECRETS else {}),
        }
        for key, (type_, meaning) in INPUTS.items()
    }
    partitions = "Application id → topic → partition count after the run."
    component = {
        "description": "Internal topics, sinks and ACLs of the applications of a stack. A program has one.",
        "isComponent": True,
        "inputProperties": inputs,
        "properties": {"partitions": {**_PARTITIONS, "description": partitions}},
        "required": ["partitions"],
    }
    return {
        "name": "headwater",
        "displayName": "Headwater",
        "version": version("headwater"),
        "description": "Topics of Kafka Streams applications, planned from their topologies.",
        "license": "Apache-2.0",
        "provider": {},
        "resources": {TOKEN: component},
        "language": {"nodejs": {"respectSchemaVersion": True}, "python": {"respectSchemaVersion": True}},
    }


class Applications(pulumi.ComponentResource):
    """What a program declares. It has no children: ADR 48 says why."""

    def __init__(self, name: str, opts: pulumi.ResourceOptions | None) -> None:
        super().__init__(TOKEN, name, {}, opts)
        self.register_outputs({})


class PackageProvider(Provider):
    """Constructs the component, once in each run: a stack is planned as a whole."""

    def __init__(self) -> None:
        super().__init__(version("headwater"), json.dumps(package_schema()))
        self._constructed = ""

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        if resource_type != TOKEN:
            raise _input_error(f"the package headwater has no component {resource_type}")
        if self._constructed:
            raise _input_error(_SECOND.format(self._constructed, name))
        self._constructed = name
        component = Applications(name, options)
        return ConstructResult(
            component.urn, {"partitions": pulumi.Output.from_input(_deploy_inputs(name, inputs))}
        )


_SECOND = (
    "this resource was not deployed: the program declares two of headwater:Applications, {} and {}. A "
    "stack is planned as a whole: list all folders in `documents` of one resource, or use several stacks"
)


async def _deploy_inputs(name: str, inputs: pulumi.Inputs) -> Mapping[str, Mapping[str, int]] | str:
    """Deploy the stack; return application id → topic → partition count, or UNKNOWN.

    Raises:
        InputPropertiesError: There are errors, which are logged before; shown without a traceback.
    """
    outputs = {key: pulumi.Output.from_input(value) for key, value in inputs.items()}
    values = {key: await output.future() for key, output in outputs.items() if await output.is_known()}
    if unknown := sorted(outputs.keys() - values.keys()):
        # Only in a preview: an input is an output of a resource that is not created, or that is replaced.
        state = await read_stack_state()
        if state.topics or state.records:
            # The engine would plan to delete the topics, because nothing registers them.
            raise _input_error(_UNKNOWN_WITH_TOPICS.format(name, ", ".join(unknown), unknown[0]))
        pulumi.log.warn(_UNKNOWN.format(name, ", ".join(unknown)))
        return UNKNOWN
    secrets = [key for key, output in outputs.items() if await output.is_secret()]
    texts = {key: input_text(value) for key, value in values.items() if value is not None}
    try:
        applications = await deploy(configured_settings(ResourceInputs(name, texts, frozenset(secrets))))
    except pulumi.RunError as error:
        raise _input_error(str(error)) from None
    return {id_: dict(application.partitions) for id_, application in applications.items()}


def _input_error(text: str) -> InputPropertiesError:
    return InputPropertiesError(text, errors=[])


_UNKNOWN = (
    "the topics of {} are not planned in this preview: {} will be known after other resources are created. "
    "`pulumi up` plans them then, and refuses what it would refuse now"
)
_UNKNOWN_WITH_TOPICS = (
    "the topics of {} cannot be planned in this preview: {} will be known after other resources are created "
    "or replaced. Set the value in the configuration of the stack (`pulumi config set headwater:{} …`) "
    "instead of an input. Or run `pulumi up --skip-preview`, which plans the topics when the value is known, "
    "and refuses what it must refuse. Do not remove the protection of topics: nothing needs to be deleted"
)


def input_text(value: object) -> str:
    """Return an input as the stack's configuration would have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # the engine sends all numbers as floating point numbers
    return json.dumps(value)


def run_plugin() -> None:
    """Serve the plugin until the engine ends it: the program `pulumi-resource-headwater`."""
    main(PackageProvider(), sys.argv[1:])
