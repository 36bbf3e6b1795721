"""Options in seconds; a module of its own, because other options import the Kafka client."""

import math

import click


class Seconds(click.FloatRange):
    """Seconds, without `nan` and `inf`, which Python reads as numbers."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = float(super().convert(value, param, ctx))
        if not math.isfinite(seconds):
            self.fail(f"{value!r} is not a number of seconds.", param, ctx)
        return seconds
