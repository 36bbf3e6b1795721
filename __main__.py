"""The Pulumi program of this project: the topics of `headwater:documents` on the cluster of the stack."""

import pulumi

from infra.apply import run_program

pulumi.run(run_program)
