"""Run all steps of the demo."""

import time
from contextlib import ExitStack
from pathlib import Path

import attrs
from rich.console import Console

from headwater.cli.demo.environment import Environment, Jars, start_environment
from headwater.cli.demo.observation import Observation
from headwater.cli.demo.output import Output, Result
from headwater.cli.demo.steps import SOURCE_TOPICS, STEPS, Step
from headwater.toolchain import KafkaDistribution, PulumiToolchain


def run_demo(
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
