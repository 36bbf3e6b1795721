"""The Pulumi program: it creates the topics that the documents of the stack need."""

import pulumi

from headwater.pulumi import run_program

pulumi.run(run_program)
