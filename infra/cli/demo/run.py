"""Play the story."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import attrs
from rich.console import Console

from infra.cli.demo.observation import Seen
from infra.cli.demo.stage import Stage, stage
from infra.cli.demo.story import SOURCE_TOPICS, STORY, Step
from infra.cli.demo.telling import Result, Teller
from toolchain import KafkaDistribution, PulumiToolchain


def play(
    folder: Path,
    kafka: KafkaDistribution,
    pulumi: PulumiToolchain,
    spark_jars: Sequence[str],
    console: Console,
) -> bool:
    """Play all steps in `folder`; return whether all went as expected. The broker is stopped in any case."""
    teller = Teller(console)
    with ExitStack() as ending:
        ready = ending.enter_context(stage(folder, kafka, pulumi, spark_jars, SOURCE_TOPICS))
        ending.enter_context(ready.member("loyalty", "purchases"))
        teller.introduce(ready.broker.bootstrap_servers, sorted(ready.documents()))
        results = [_play(number, step, ready, teller) for number, step in enumerate(STORY, 1)]
    teller.conclude(results)
    return _all_right(results)


def _play(number: int, step: Step, on: Stage, teller: Teller) -> Result:
    start = time.monotonic()
    teller.begin(number, step)
    for act in step.acts:
        teller.command(act.command(on))
        act.do(on)
    before = on.topics()
    teller.command(step.command.command(on))
    finished = step.command.run(on)
    teller.output(finished)
    seen = Seen.of(finished, before, on.topics())
    if step.reads:
        seen = attrs.evolve(seen, results=on.revenue(step.reads))
    result = Result(step, seen, time.monotonic() - start)
    teller.end(result)
    return result


def _all_right(results: Sequence[Result]) -> bool:
    return all(result.is_right for result in results)
