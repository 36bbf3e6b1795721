"""`python -m headwater.cli` runs `headwater` where the command is not on PATH."""

from headwater.cli.main import main

main(prog_name="headwater")
