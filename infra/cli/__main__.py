"""`python -m infra.cli` is `headwater`, for places where the command is not on PATH."""

from infra.cli.main import main

main(prog_name="headwater")
