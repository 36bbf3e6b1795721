"""The agent as a program of its own: `spark-submit spark_jobs/agent_main.py FILES...`, or `python -m`.

The connection comes from HEADWATER_* or KAFKA_* variables (docs/agent.md), or from --bootstrap-server. The
agent is one process that needs no executors: in cluster mode it runs on the driver and is restarted with it.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.agent.start import AgentOptions, default_client_id, start
from spark_jobs.entry_point import add_options, run_program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the agent until it is stopped; return the exit code."""
    given = _parser().parse_args(arguments)
    return run_program(
        lambda connection: start(
            AgentOptions(
                files=given.files,
                manifest=given.manifest,
                connection=connection,
                client_id=given.client_id,
                group=given.group,
                metadata_max_age_ms=given.metadata_max_age_ms,
                callback=given.callback,
                http=given.http,
                log_format=given.log_format,
                once=given.once,
            )
        ),
        given.bootstrap_server,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Expand internal topics when source topics grow (KIP-878).")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("files", nargs="*", default=[], type=Path, help="topology documents")
    what.add_argument("--manifest", type=Path, help="what `headwater agent manifest` wrote")
    parser.add_argument("--client-id", default=default_client_id())
    parser.add_argument("--group", default="default", help="agents of one group share their work")
    parser.add_argument("--metadata-max-age-ms", type=int, help="else as the documents say")
    parser.add_argument("--callback", metavar="MODULE:CLASS", help="told of finished expansions")
    parser.add_argument("--once", action="store_true", help="bring everything up to date, then end")
    add_options(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
