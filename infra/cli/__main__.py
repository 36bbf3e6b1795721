"""`python -m infra.cli` runs `headwater` where the command is not on PATH."""

from infra.cli.main import main

main(prog_name="headwater")
