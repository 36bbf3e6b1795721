"""The `headwater` command: the list of subcommands, and error handling; the group `headwater state`."""

import errno
import gc
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from headwater.cli.console import (
    ExitCode,
    discard_output,
    print_problems,
    unusable_file,
    unwritable_output,
)
from headwater.cli.lazy import Lazy, LazyGroup
from headwater.model.problems import ProblemsError

_COMMANDS: Mapping[str, Lazy] = {
    "new": Lazy(
        "headwater.cli.new.command",
        "new",
        "Create a repository for topology documents, or for an application (--streams).",
    ),
    "toolchain": Lazy(
        "headwater.cli.toolchain",
        "toolchain",
        "Download or build the Pulumi CLI, its Kafka plugin, Kafka, Spark's connector and the Java library.",
    ),
    "doctor": Lazy(
        "headwater.cli.doctor.command",
        "doctor",
        "Check this machine, a stack and a cluster, and say how to fix what does not work.",
    ),
    "validate": Lazy(
        "headwater.cli.validate", "validate", "Check topology documents, offline.", is_brief=True
    ),
    "compile": Lazy(
        "headwater.cli.compile", "compile_", "Show the internal topics that documents need.", is_brief=True
    ),
    "plan": Lazy("headwater.cli.plan", "plan", "Show what `pulumi up` would do to a cluster.", is_brief=True),
    "drift": Lazy(
        "headwater.cli.drift",
        "drift",
        "Report the differences between documents and a cluster.",
        is_brief=True,
    ),
    "upgrade": Lazy(
        "headwater.cli.upgrade",
        "upgrade",
        "Show what another version of Kafka Streams changes for applications.",
    ),
    "plan-comment": Lazy(
        "headwater.cli.plan_comment", "plan_comment", "Write a pull request comment from a plan."
    ),
    "records": Lazy(
        "headwater.cli.stack",
        "records",
        "Write the setup records of a stack to a file, without its secrets.",
    ),
    "publish": Lazy(
        "headwater.cli.publish", "publish", "Publish a report as a comment or issue on GitHub or GitLab."
    ),
    "change": Lazy(
        "headwater.cli.change",
        "change",
        "Show what an edit of topologies does to state, records in flight and committed offsets.",
    ),
    "acls": Lazy("headwater.cli.acls", "acls", "Show the ACLs that applications or Headwater require."),
    "schema": Lazy(
        "headwater.cli.package_files",
        "schema",
        "Print the JSON Schema of documents or policy files, for editors.",
    ),
    "explain": Lazy(
        "headwater.cli.explain",
        "explain",
        "Explain a problem code: what it means, why it matters, what to do.",
    ),
    "describe": Lazy("headwater.cli.describe", "describe", "Print Kafka Streams' description of a topology."),
    "import": Lazy(
        "headwater.cli.import_", "import_", "Create documents from code, or from running applications."
    ),
    "run": Lazy("headwater_spark.commands.run", "run", "Run the application of a document on Spark."),
    "status": Lazy("headwater.cli.status", "status", "Show the status of a running application."),
    "threads": Lazy(
        "headwater.cli.threads",
        "threads",
        "List, add and remove the stream threads of a running application.",
    ),
    "processors": Lazy(
        "headwater.cli.processors",
        "processors",
        "Show the processors of applications with state, add and remove some.",
    ),
    "reshard": Lazy(
        "headwater_spark.commands.reshard",
        "reshard",
        "Give a stopped application more partitions, and each key its state.",
    ),
    "state": Lazy("headwater.cli.main", "state", "Copy the state of stopped applications."),
    "agent": Lazy("headwater.cli.agent", "agent", "Expand internal topics while applications run."),
    "dashboards": Lazy(
        "headwater.cli.package_files",
        "dashboards",
        "Copy the dashboards for Grafana and the alerts for Prometheus into a folder.",
    ),
    "streams-library": Lazy(
        "headwater.cli.toolchain",
        "streams_library",
        "Copy the library for Kafka Streams applications into a folder.",
    ),
    "local": Lazy("headwater.cli.local", "local", "Start, stop and inspect a Kafka broker on this machine."),
    "demo": Lazy("headwater.cli.demo.command", "demo", "Demonstrate Headwater on a real Kafka broker."),
}
_PACKAGES = ("headwater", "headwater_spark")
_ON = ("1", "true", "yes", "on")
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_NO_HOME = "Could not determine home directory."
"""The text of `Path.expanduser` if neither HOME nor the list of users has the folder."""


class _Headwater(LazyGroup):
    """Prints errors as a short text and sets the exit code; prints a traceback only with `--debug`."""

    def __call__(self, *args: Any, **extra: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run as the only command of the process; a brief one runs without garbage collection."""
        command = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
        if command in self.lazy and self.lazy[command].is_brief:
            gc.disable()
        try:
            return self.main(*args, **extra)
        finally:
            # The garbage collections at the end of a process take a tenth of a second and free nothing.
            gc.freeze()

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> Any:  # noqa: ANN401 - click's signature
        """Run and exit like `click.Command.main`, with the exit codes of `ExitCode`."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        _prepare_streams()
        output = sys.stdout
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
            output.flush()
        except SystemExit as error:
            # click ends the process with exit code 1 if the reader of the output is gone, and replaces the
            # stream. That is not an error: `headwater --help | head -1` printed what was read.
            code = error.code if sys.stdout is output else ExitCode.DONE
        except Exception as error:  # noqa: BLE001 - the last handler of all errors
            code = _report_error(error, sys.argv[1:] if args is None else args)
        except KeyboardInterrupt:
            code = _report_error(click.Abort(), ())
        sys.exit(code if isinstance(code, int) else ExitCode.DONE)


@click.group(
    cls=_Headwater,
    lazy=_COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="headwater", message="headwater %(version)s")
@click.option(
    "--debug", is_flag=True, envvar="HEADWATER_DEBUG", help="Show the traceback of an unexpected error."
)
@click.pass_context
def main(context: click.Context, *, debug: bool) -> None:
    """Manage the internal Kafka topics of stream-processing topologies as declared in documents.

    \b
    Examples:
      headwater validate topologies/
      headwater compile orders.yaml --partitions orders=6
      headwater plan topologies/ --bootstrap-server localhost:9092
      headwater demo

    `headwater COMMAND --help` shows the options of a command, `headwater explain CODE` explains a problem.
    """
    context.obj = {"debug": debug}


_STATE_HELP = """Copy the state of stopped applications.

A store or topic is copied to another name, for example after a rename.

\b
Examples:
  headwater state copy orders.yaml --store old-counts=counts --bootstrap-server localhost:9092
  headwater state copy orders.yaml --topic orders-app-a-repartition=orders-app-b-repartition
"""

state = LazyGroup(
    "state",
    lazy={
        "copy": Lazy(
            "headwater_spark.commands.state_copy",
            "copy",
            "Copy state to topics with other names, after a rename.",
        ),
    },
    help=_STATE_HELP,
)


def _report_error(error: Exception, arguments: Sequence[str]) -> int:
    """Print the error, if standard error has a reader, and return the exit code."""
    try:
        _print_error(error, is_debugging=_is_debugging(arguments, os.environ))
    except BrokenPipeError:
        discard_output(sys.stderr)
    return _code_of(error)


def _code_of(error: Exception) -> int:
    match error:
        case click.UsageError():
            return ExitCode.USAGE
        case click.ClickException():
            return error.exit_code
        case ProblemsError():
            return ExitCode.RESTART if error.is_temporary else ExitCode.PROBLEMS
        case click.Abort():
            return ExitCode.INTERRUPTED
        case OSError(errno=errno.EPIPE):
            return ExitCode.DONE
        case OSError() if _is_unwritable(error) or _is_users_file(error.filename):
            return ExitCode.PROBLEMS
        case RuntimeError() if str(error) == _NO_HOME:
            return ExitCode.PROBLEMS
        case _:
            return ExitCode.BUG


def _print_error(error: Exception, *, is_debugging: bool) -> None:
    match error:
        case click.ClickException():
            error.show()
        case ProblemsError():
            print_problems(error.problems)
        case click.Abort():
            click.echo("Interrupted.", err=True)
        case OSError(errno=errno.EPIPE):
            discard_output(sys.stdout)
        case OSError() if _is_unwritable(error):
            unwritable_output(error).show()
        case _ if is_debugging:
            import traceback  # noqa: PLC0415 - only after an error

            traceback.print_exception(error)
        case OSError() if _is_users_file(error.filename):
            unusable_file(error).show()
        case RuntimeError() if str(error) == _NO_HOME:
            click.echo("Error: The home folder of this user is not known.\n  Set HOME to a folder.", err=True)
        case _:
            click.echo(_unexpected_text(error), err=True)


def _is_unwritable(error: OSError) -> bool:
    return error.filename is None and error.errno in _UNWRITABLE


def _is_users_file(name: object) -> bool:
    """Return whether it is a path outside of Headwater's packages, and not the name of a program on PATH."""
    if not isinstance(name, str | bytes):
        return False
    path = os.fsdecode(name)
    packages = [sys.modules[each].__path__ for each in _PACKAGES if each in sys.modules]
    return os.sep in path and not any(
        Path(path).absolute().is_relative_to(folder) for folders in packages for folder in folders
    )


def _unexpected_text(error: Exception) -> str:
    import traceback  # noqa: PLC0415 - only after an error

    last = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"Error in Headwater itself: {type(error).__name__}: {error}\n"
        f"  in {last.name}, {Path(last.filename).name}:{last.lineno}\n"
        "  Run it again as `headwater --debug ...` and report the output, with the document if possible."
    )


def _is_debugging(arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    return "--debug" in arguments or environment.get("HEADWATER_DEBUG", "").lower() in _ON


def _prepare_streams() -> None:
    """Open closed standard streams, and let no character that the locale does not have end a command."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - kept open
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
