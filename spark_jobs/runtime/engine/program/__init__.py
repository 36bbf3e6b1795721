"""Build programs from a compiled application: what runs in each sub-topology.

    problems = problems_of(document, nodes, schemas)
    programs = build_programs(document, nodes, compiled, schemas, schema_of)

`schemas` has the texts of the files in `schema_files(nodes, config)`, and the latest schemas of the subjects
in `registered_formats(nodes, config)`, by `serdes.schema_key`. Programs are frozen values that the driver
sends to workers; expressions and serdes are compiled there, once per process.
"""

from spark_jobs.runtime.engine.program.building import build_programs
from spark_jobs.runtime.engine.program.checking import problems_of
from spark_jobs.runtime.engine.program.formats import registered_formats, schema_files
from spark_jobs.runtime.engine.program.partitioning import PartitionRule
from spark_jobs.runtime.engine.program.program import SubtopologyProgram

__all__ = [
    "PartitionRule",
    "SubtopologyProgram",
    "build_programs",
    "problems_of",
    "registered_formats",
    "schema_files",
]
