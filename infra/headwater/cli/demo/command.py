"""The `headwater demo` command: start brokers and programs, and run all steps."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import attrs
import click
from rich.console import Console

from headwater.cli.console import ExitCode
from headwater.cli.demo.environment import Environment, Jars, start_environment
from headwater.cli.demo.observation import Observation
from headwater.cli.demo.output import Output, Result
from headwater.cli.demo.steps import SOURCE_TOPICS, STEPS, Step
from headwater.kafka.command_line import NamedPath
from headwater.toolchain import (
    KafkaDistribution,
    PulumiToolchain,
    ToolchainError,
    ensure_kafka,
    ensure_pulumi,
    ensure_spark_jars,
)
from headwater.toolchain.kafka_streams import ensure_kafka_streams
from headwater.toolchain.streams_library import ensure_streams_library

_WIDTH_OF_FILES = 120


@click.command()
@click.option(
    "--keep",
    type=NamedPath(file_okay=False, path_type=Path),
    help="Run in this new folder and keep it, for inspection.",
)
@click.pass_context
def demo(context: click.Context, keep: Path | None) -> None:
    """Demonstrate Headwater on a real Kafka broker.

    Starts its own broker, runs the real Pulumi engine on the three example documents, changes and deletes
    topics, runs one of the topologies on Spark, runs a Kafka Streams application with and without the
    library, shows the results, and stops everything. Takes one to three minutes; the first run on a machine
    also downloads or builds the tools.

    \b
    Examples:
      headwater demo
      headwater demo --keep /tmp/shop
    """
    console = Console(width=None if Console().is_terminal else _WIDTH_OF_FILES)
    try:
        kafka, pulumi = ensure_kafka(), ensure_pulumi()
        spark = tuple(map(str, ensure_spark_jars()))
        jars = Jars(spark, (ensure_streams_library(), ensure_kafka_streams() / "*"))
        if keep is not None:
            keep.mkdir(parents=True)
            is_expected = _run_demo(keep.absolute(), kafka, pulumi, jars, console)
        else:
            with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
                is_expected = _run_demo(Path(folder), kafka, pulumi, jars, console)
    except ToolchainError as error:
        raise click.ClickException(str(error)) from error
    except FileExistsError:
        raise click.UsageError(f"{keep} exists. Choose a folder that does not exist.") from None
    context.exit(ExitCode.DONE if is_expected else ExitCode.PROBLEMS)


def _run_demo(
    folder: Path,
    kafka: KafkaDistribution,
    pulumi: PulumiToolchain,
    jars: Jars,
    console: Console,
) -> bool:
    """Run all steps in `folder`; return whether all results are as expected. Always stops the broker."""
    output = Output(console)
    with ExitStack() as stack:
        environment = stack.enter_context(start_environment(folder, kafka, pulumi, jars, SOURCE_TOPICS))
        stack.enter_context(environment.member("loyalty", "purchases"))
        output.header(environment.broker.bootstrap_servers, sorted(environment.documents()))
        results = [_run_step(number, step, environment, output) for number, step in enumerate(STEPS, 1)]
    output.summary(results)
    return all(result.is_expected for result in results)


def _run_step(number: int, step: Step, environment: Environment, output: Output) -> Result:
    start = time.monotonic()
    output.step_header(number, step)
    for action in step.actions:
        output.command(action.command(environment))
        action.run(environment)
    before = environment.topics()
    output.command(step.command.command(environment))
    finished = step.command.run(environment)
    output.command_output(finished)
    observed = Observation.of(finished, before, environment.topics())
    if step.reads:
        observed = attrs.evolve(observed, results=environment.revenue(step.reads))
    result = Result(step, observed, time.monotonic() - start)
    output.step_result(result)
    return result
