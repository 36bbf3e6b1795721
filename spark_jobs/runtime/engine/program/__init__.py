"""PURE. From a compiled application to programs: what runs in each sub-topology, wired, named, formatted.

    faults = problems_of(document, nodes, schemas)
    programs = build_programs(document, nodes, compiled, schemas)

`schemas` are the texts of the schema files that `schema_files(nodes, config)` names, and the latest schemas
of the subjects in `registered_formats(nodes, config)`, by `serdes.schema_key`. Programs are frozen values
that travel to workers; expressions and serdes are compiled there, once in each process.
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
