"""`headwater plan-comment`: write a pull request comment from a plan."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from headwater.cli.console import write_text
from headwater.cli.options import output_option
from headwater.kafka.input_files import LARGEST_REPORT, read_stream
from headwater.report.edits.to_json import read_edit
from headwater.report.plan_comment import Preview, read_drift, read_plan, read_preview
from headwater.report.plan_comment import plan_comment as written

Value = TypeVar("Value")


@click.command("plan-comment")
@click.argument("preview", type=click.File("rb"), default="-", metavar="[PLAN]")
@click.option(
    "--drift",
    type=click.File("rb"),
    help="The output of `headwater drift --format json`: adds the drift before the change, and graphs.",
)
@click.option(
    "--change",
    type=click.File("rb"),
    help="The output of `headwater change --format json`: adds what the edit does to state.",
)
@output_option
def plan_comment(
    *,
    preview: Any,  # noqa: ANN401 - open files of click
    drift: Any,  # noqa: ANN401 - open files of click
    change: Any,  # noqa: ANN401 - open files of click
    output: Path | None,
) -> None:
    """Write a pull request comment from a plan.

    PLAN is the output of `headwater plan --format json` or `pulumi preview --json`; the default - is standard
    input. Errors are shown first, then changes that can lose data. The comment begins with a hidden marker,
    by which `headwater publish` finds and replaces an older comment. Connects to no cluster and reads no
    stack. Exit code 0 also if the plan was refused; the comment reports that.

    \b
    Examples:
      headwater plan-comment plan.json --drift drift.json --output comment.md
      headwater plan-comment plan.json --change change.json
      pulumi preview --json | headwater plan-comment
    """
    planned = _read_input(preview, _read_either, "headwater plan --format json` or `pulumi preview --json")
    drifted = _read_input(drift, read_drift, "headwater drift --format json") if drift else None
    edit = _read_input(change, read_edit, "headwater change --format json") if change else None
    write_text(written(planned, drifted, edit=edit), output)


def _read_either(text: str) -> Preview:
    try:
        return read_plan(text)
    except ValueError:
        return read_preview(text)


def _read_input(file: Any, read: Callable[[str], Value], command: str) -> Value:  # noqa: ANN401 - as above
    name = getattr(file, "name", "standard input")
    try:
        return read(read_stream(file, LARGEST_REPORT).decode())
    except OSError as error:
        raise click.ClickException(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError as error:
        raise click.ClickException(
            f"{name} is not the output of `{command}` ({error}).\n  Create it again."
        ) from None
