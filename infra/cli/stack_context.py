"""The inputs of `plan` and `drift`: documents, the cluster, and records and settings of a Pulumi stack."""

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.evidence import EvidenceRequest
from infra.model.ownership import StackIdentity
from infra.model.problems import Problem, ProblemsError, errors
from infra.model.record import SetupRecord
from infra.model.topology import TopologyDocument
from infra.observe import Connection, KafkaClusterReader, snapshot_request
from infra.observe.command_line import connection, named_connection
from infra.observe.environment import names_cluster
from infra.observe.evidence import with_evidence
from infra.observe.processor_state import with_processor_state
from infra.observe.visibility import check_visible

if TYPE_CHECKING:
    from infra.model.policies import Policy
    from infra.spec import Documents


@attrs.frozen(kw_only=True)
class StackOptions:
    """The stack that the command line names: its name, or a file with its state, both, or neither.

    With both, Pulumi is not run: the settings are read from the file of the stack, without its secrets.
    """

    name: str | None = None
    project: Path = Path()
    state: Path | None = None


@attrs.frozen(kw_only=True)
class StackContext:
    """The documents, changed by the switches of the stack, and everything they are compared with.

    `records` is None if no stack is named. `document_problems` are warnings, `stack_problems` may be errors.
    """

    documents: Sequence[TopologyDocument]
    reader: KafkaClusterReader
    document_problems: tuple[Problem, ...]
    records: Mapping[str, SetupRecord] | None = None
    policies: "tuple[Policy, ...]" = ()
    cluster_id: str | None = None
    stack_problems: tuple[Problem, ...] = ()
    stack: StackIdentity | None = None
    has_ownership_records: bool = False

    def with_records(self, records: Mapping[str, SetupRecord]) -> "StackContext":
        """Return the context with setup records, whose versions hold for documents that name none."""
        from infra.planner.upgrade import with_recorded_versions  # noqa: PLC0415 - only for a stack

        return attrs.evolve(self, documents=with_recorded_versions(self.documents, records), records=records)

    def compile(self, *, for_drift: bool = False) -> tuple[tuple[CompiledApplication, ...], ClusterSnapshot]:
        """Compile the documents for the cluster while the cluster answers the remaining requests.

        If the owner of a topic is in question, the evidence is read, too; `for_drift`: also of topics that no
        document declares.

        Raises:
            ProblemsError: The cluster could not be read.
        """
        read = snapshot_request(self.documents, self.records or {})
        reading = self.reader.begin(
            attrs.evolve(read, with_ids=self.records is not None, with_ownership=self.has_ownership_records)
        )
        import infra.planner  # noqa: F401, PLC0415 - the callers need it: imported while the cluster answers
        from infra.compiler import compile_documents  # noqa: PLC0415 - same

        compiled = compile_documents(self.documents, reading.partitions)
        snapshot = reading.snapshot()
        if snapshot.partitions != reading.partitions:  # a topic became visible in between
            compiled = compile_documents(self.documents, snapshot.partitions)
        check_visible(self.reader, snapshot, compiled)
        snapshot = with_processor_state(self.reader, snapshot, compiled)
        request = self._evidence_request(compiled, snapshot, for_drift=for_drift)
        return compiled, with_evidence(self.reader, snapshot, request)

    def _evidence_request(
        self, compiled: tuple[CompiledApplication, ...], snapshot: ClusterSnapshot, *, for_drift: bool
    ) -> EvidenceRequest:
        if for_drift:
            from infra.planner.drift import drift_evidence_request  # noqa: PLC0415 - imported meanwhile

            return drift_evidence_request(compiled, snapshot, self.records)
        from infra.planner.evidence.questions import evidence_request  # noqa: PLC0415 - same

        return evidence_request(compiled, snapshot, self.records)


def load_context(
    files: Sequence[Path],
    bootstrap_server: str | None,
    command_config: Path | None,
    stack: StackOptions,
) -> StackContext:
    """Load the documents and what the stack adds, while the cluster answers the first request.

    The cluster is the one that the command line names, otherwise that of the environment, otherwise that of
    the stack. Of a stack, its limits and policy files are read, too.

    Raises:
        ProblemsError: Documents or connection settings have errors; it has the problems of both.
        click.ClickException: Pulumi cannot show the stack, or the exported state is not readable.
    """
    reader, connection_problems = _open_reader(bootstrap_server, command_config, stack)
    from infra.spec import load_documents  # noqa: PLC0415 - imported while the cluster answers

    loaded = load_documents(files)
    if reader is None or errors(loaded.problems):
        raise ProblemsError([*loaded.problems, *connection_problems])
    return _with_stack(loaded, reader, stack)


def _open_reader(
    bootstrap_server: str | None, command_config: Path | None, stack: StackOptions
) -> tuple[KafkaClusterReader | None, Sequence[Problem]]:
    try:
        reader = KafkaClusterReader(_connection(bootstrap_server, command_config, stack))
    except ProblemsError as error:
        return None, error.problems
    reader.open()
    return reader, ()


def _connection(bootstrap_server: str | None, command_config: Path | None, stack: StackOptions) -> Connection:
    if stack.name is None or stack.state is not None or names_cluster(os.environ):
        return connection(bootstrap_server, command_config)
    if (named := named_connection(bootstrap_server, command_config)) is not None:
        return named
    # Imported only for a stack, because they import Pulumi's toolchain.
    from infra.apply.settings import stack_connection  # noqa: PLC0415
    from infra.cli.stack import read_config  # noqa: PLC0415

    config = read_config(stack.name, stack.project, with_secrets=True)
    with chdir(stack.project):  # paths of certificates are relative to the project
        return stack_connection(config, os.environ)


def _with_stack(loaded: "Documents", reader: KafkaClusterReader, stack: StackOptions) -> StackContext:
    context = StackContext(documents=loaded.documents, reader=reader, document_problems=loaded.problems)
    if stack.name is None and stack.state is None:
        return context
    # Imported only for a stack, because they import Pulumi's toolchain.
    from infra.apply.settings import has_ownership, plan_policy, with_switches  # noqa: PLC0415
    from infra.cli.stack import (  # noqa: PLC0415
        parse_state,
        read_config,
        read_config_file,
        read_state,
        stack_name,
    )

    given = None if stack.state is None else parse_state(_state_text(stack.state), str(stack.state))
    if stack.name is None:
        return context.with_records(given.records if given else {})
    name = stack.name
    config = read_config(name, stack.project) if given is None else read_config_file(name, stack.project)
    policy, policy_problems = plan_policy(config, stack.project)
    documents = with_switches(loaded.documents, config, are_all=False)
    state = read_state(name, stack.project) if given is None else given
    context = attrs.evolve(context, documents=documents).with_records(state.records)
    return attrs.evolve(
        context,
        stack=StackIdentity(
            state.stack_id,
            state.name or stack_name(name, stack.project),
            has_records=bool(state.stack_id),
        ),
        has_ownership_records=has_ownership(config),
        policies=policy.policies,
        cluster_id=config.text("clusterId"),
        stack_problems=(*config.problems, *policy_problems),
    )


def _state_text(path: Path) -> str:
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise click.BadParameter(f"{path} cannot be read: {reason}.", param_hint="--stack-state") from None
