"""Run a job as a program of its own, for `spark-submit` and `python -m`."""

import gc
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import click

from headwater.command_line.termination import RESTART
from headwater.model.problems import ProblemsError

_FAILED = 1
_INTERRUPTED = 130


def run_program(command: click.Command, arguments: Sequence[str] | None = None) -> int:
    """Run a job as a program of its own and return the exit code.

    Problems go to standard error. Exit code 0: stopped, or done; 1: problems; 2: wrong command line; 75:
    Spark ended, start the job again; 130: interrupted before the job ran.
    """
    name = Path(sys.argv[0]).name if arguments is None else command.name
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        return _INTERRUPTED
    except ProblemsError as error:
        from headwater.report.problem_output import print_problems  # noqa: PLC0415 - only when something is wrong

        with suppress(OSError):  # with `spark-submit`, a JVM that has ended was the reader
            print_problems(error.problems)
        return RESTART if error.is_temporary else _FAILED
    finally:
        # The garbage collections at the end of the process take a tenth of a second and free nothing.
        gc.freeze()
    return code if isinstance(code, int) else 0
