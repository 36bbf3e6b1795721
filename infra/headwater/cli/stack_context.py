"""The inputs of `plan` and `drift`: documents, the cluster, and records and settings of a Pulumi stack."""

import ast
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from headwater.cli.console import print_line
from headwater.kafka import Connection
from headwater.kafka.command_line import NamedCluster
from headwater.model.problems import Problem, ProblemCode, ProblemsError, errors

if TYPE_CHECKING:
    from headwater.kafka import KafkaClusterReader
    from headwater.model.policies import Policy
    from headwater.model.records import SetupRecord, StackIdentity
    from headwater.model.topology import TopologyDocument
    from headwater.operations.observation import Observation, Questions
    from headwater.pulumi.stack_state import StackState
    from headwater.spec import Documents

_RUN_PROGRAM = "run_program"
_PROGRAM_MODULES = ("headwater.pulumi", "headwater.pulumi.program")


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

    documents: "Sequence[TopologyDocument]"
    reader: "KafkaClusterReader"
    document_problems: tuple[Problem, ...]
    records: "Mapping[str, SetupRecord] | None" = None
    policies: "tuple[Policy, ...]" = ()
    cluster_id: str | None = None
    configures_records: bool = True
    stack_problems: tuple[Problem, ...] = ()
    stack: "StackIdentity | None" = None
    has_ownership_records: bool = False
    state: "StackState | None" = None
    """The state of the stack; None if no stack is named."""
    is_only_program: bool = False
    """Whether the program of the project uses `run_program`, and so registers nothing else."""

    def with_records(self, records: "Mapping[str, SetupRecord]") -> "StackContext":
        """Return the context with setup records, whose versions hold for documents that name none."""
        from headwater.planner.upgrade import with_recorded_versions  # noqa: PLC0415 - only for a stack

        return attrs.evolve(self, documents=with_recorded_versions(self.documents, records), records=records)

    def observe_cluster(
        self, prepare: "Callable[[], Questions | None]", *, with_topologies: bool = False
    ) -> "Observation":
        """Compile the documents for the cluster while the cluster answers the remaining requests.

        `prepare` as for `observe_cluster`. `with_topologies`: also what runs in streams groups.
        Raises `ProblemsError`: the cluster could not be read.
        """
        from headwater.operations.observation import observe_cluster  # noqa: PLC0415 - while it answers

        return observe_cluster(
            self.reader,
            self.documents,
            self.records,
            with_ownership=self.has_ownership_records,
            with_topologies=with_topologies,
            prepare=prepare,
        )


def load_context(files: Sequence[Path], cluster: NamedCluster, stack: StackOptions) -> StackContext:
    """Load the documents and what the stack adds, while the cluster answers the first request.

    The cluster is named by the command line, otherwise by the stack, otherwise by the environment, as for
    `pulumi preview`. Of a stack, its limits and policy files are read, too.

    Without `files`, the documents of the stack are read.

    Raises:
        ProblemsError: Documents or connection settings have errors; it has the problems of both.
        click.UsageError: Neither files nor a stack are named.
        click.ClickException: Pulumi cannot show the stack, or the exported state is not readable.
    """
    if not files and stack.name is None:
        raise click.UsageError("Missing argument 'FILES...'. Only with --stack, they may be omitted.")
    reader, connection_problems = _open_reader(cluster, stack)
    from headwater.spec import load_documents  # noqa: PLC0415 - imported while the cluster answers

    loaded = load_documents(files) if files else _documents_of(str(stack.name), stack.project)
    if reader is None or errors(loaded.problems):
        raise ProblemsError([*loaded.problems, *connection_problems])
    return _with_stack(loaded, reader, stack)


def _documents_of(stack: str, project: Path) -> "Documents":
    """Return the documents that the settings of a stack name."""
    from headwater.cli.stack import read_config_file  # noqa: PLC0415 - only for a stack
    from headwater.pulumi.settings import load_stack_documents  # noqa: PLC0415 - only for a stack

    return load_stack_documents(read_config_file(stack, project), project)


def note_missing_documents(files: Sequence[Path], problems: Iterable[Problem]) -> None:
    """Print a note if an application of the stack has no document: `files` may be only some of them."""
    if files and any(problem.code is ProblemCode.APPLICATION_REMOVED for problem in problems):
        print_line(
            "Note: name all documents of the stack, or no FILES: then its documents are read.", err=True
        )


def _open_reader(
    cluster: NamedCluster, stack: StackOptions
) -> "tuple[KafkaClusterReader | None, Sequence[Problem]]":
    from headwater.kafka import KafkaClusterReader  # noqa: PLC0415 - not needed for the help

    try:
        reader = KafkaClusterReader(_choose_connection(cluster, stack))
    except ProblemsError as error:
        return None, error.problems
    reader.open()
    return reader, ()


def _choose_connection(cluster: NamedCluster, stack: StackOptions) -> Connection:
    if stack.name is None or stack.state is not None:
        return cluster.connection()
    if (named := cluster.named_connection()) is not None:
        return named
    # Imported only for a stack, because they import Pulumi's toolchain.
    from headwater.cli.stack import read_config  # noqa: PLC0415
    from headwater.pulumi.settings import stack_connection  # noqa: PLC0415

    config = read_config(stack.name, stack.project, with_secrets=True)
    with chdir(stack.project):  # paths of certificates are relative to the project
        return stack_connection(config, os.environ)


def _with_stack(loaded: "Documents", reader: "KafkaClusterReader", stack: StackOptions) -> StackContext:
    context = StackContext(documents=loaded.documents, reader=reader, document_problems=loaded.problems)
    if stack.name is None and stack.state is None:
        return context
    # Imported only for a stack, because they import Pulumi's toolchain.
    from headwater.cli.stack import (  # noqa: PLC0415
        read_config,
        read_config_file,
        read_state,
        read_state_file,
        stack_name,
    )
    from headwater.model.records import StackIdentity  # noqa: PLC0415
    from headwater.pulumi.settings import has_ownership, plan_policy, with_switches  # noqa: PLC0415

    given = None if stack.state is None else read_state_file(stack.state, stack.name)
    context = attrs.evolve(context, state=given, is_only_program=calls_run_program(stack.project))
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
        cluster_id=policy.cluster_id,
        configures_records=policy.configures_records,
        stack_problems=(*config.problems, *policy_problems),
        state=state,
    )


def calls_run_program(project: Path) -> bool:
    """Return whether the Python program of a Pulumi project uses `run_program` of Headwater."""
    from headwater.spec.files import STACK_FILE, read_regular_file  # noqa: PLC0415 - only for a stack

    text = read_regular_file(_program_of(project), STACK_FILE)
    if not isinstance(text, str):
        return False
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    names = {
        alias.asname or alias.name
        for node in nodes
        if isinstance(node, ast.ImportFrom) and node.module in _PROGRAM_MODULES
        for alias in node.names
        if alias.name == _RUN_PROGRAM
    }
    return any(
        (isinstance(node, ast.Name) and node.id in names and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Attribute) and node.attr == _RUN_PROGRAM)
        for node in nodes
    )


def _program_of(project: Path) -> Path:
    """Return the file of the program; `main` in the project file may name a folder or the file itself."""
    from headwater.spec.files import STACK_FILE, read_regular_file  # noqa: PLC0415 - only for a stack
    from headwater.spec.yaml_text import read_yaml  # noqa: PLC0415 - only for a stack

    text = read_regular_file(project / "Pulumi.yaml", STACK_FILE)
    raws = read_yaml(text, "Pulumi.yaml")[0] if isinstance(text, str) else ()
    content = raws[0].data if raws else {}
    main = content.get("main") if isinstance(content, dict) else None
    folder = project / main if isinstance(main, str) else project
    return folder if folder.suffix == ".py" else folder / "__main__.py"
