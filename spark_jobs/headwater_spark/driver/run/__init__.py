"""One run of an application, for `headwater run` and `spark-submit`: command line, options, start and end."""

from collections.abc import Iterator
from contextlib import contextmanager

import click


@contextmanager
def runtime_installed() -> Iterator[None]:
    """Raise `click.ClickException` if an import fails: the runtime is not installed."""
    try:
        yield
    except ImportError as error:
        raise click.ClickException(
            f"{error.name} is not installed. The runtime is an extra: pip install 'headwater[spark] @ "
            "URL_OF_THE_WHEEL'"
        ) from None
