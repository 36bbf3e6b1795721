"""`headwater plan-comment`: write a pull request comment from a preview."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from infra.cli.console import write
from infra.cli.options import output_option
from infra.report.plan_comment import plan_comment as written
from infra.report.plan_comment import read_drift, read_preview

Value = TypeVar("Value")


@click.command("plan-comment")
@click.argument("preview", type=click.File(encoding="utf-8"), default="-", metavar="[PREVIEW]")
@click.option(
    "--drift",
    type=click.File(encoding="utf-8"),
    help="The output of `headwater drift --format json`: adds the drift before the change, and graphs.",
)
@output_option
def plan_comment(*, preview: Any, drift: Any, output: Path | None) -> None:  # noqa: ANN401 - open files of click
    """Write a pull request comment from a preview.

    PREVIEW is the output of `pulumi preview --json`; the default - is standard input. The comment begins with
    a hidden marker, by which `headwater publish` finds and replaces an older comment. Connects to no cluster
    and reads no stack. Exit code 0 also if the preview was refused; the comment reports that.

    \b
    Examples:
      pulumi preview --json | headwater plan-comment
      headwater plan-comment preview.json --drift drift.json --output comment.md
    """
    planned = _read(preview, read_preview, "pulumi preview --json")
    drifted = _read(drift, read_drift, "headwater drift --format json") if drift else None
    write(written(planned, drifted), output)


def _read(file: Any, read: Callable[[str], Value], command: str) -> Value:  # noqa: ANN401 - as above
    try:
        return read(file.read())
    except ValueError as error:
        raise click.ClickException(
            f"{file.name} is not the output of `{command}` ({error}).\n  Create it again: {command} > FILE"
        ) from None
