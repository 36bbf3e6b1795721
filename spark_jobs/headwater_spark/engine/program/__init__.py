"""Build programs from a compiled application: what runs in each sub-topology.

    problems = problems_of(document, nodes, schemas)
    programs = build_programs(document, nodes, compiled, schemas, schema_of)

`schemas` has the texts of the files in `schema_files(nodes, config)`, and the latest schemas of the subjects
in `registered_formats(nodes, config)`, by `serdes.schema_key`. Programs are frozen values that the driver
sends to workers; expressions and serdes are compiled there, once per process.
"""

from headwater_spark.engine.program.checking import problems_of
from headwater_spark.engine.program.formats import registered_formats, schema_files
from headwater_spark.engine.program.partitioning import PartitionRule
from headwater_spark.engine.program.program import SubtopologyProgram, build_programs

__all__ = [
    "PartitionRule",
    "SubtopologyProgram",
    "build_programs",
    "problems_of",
    "registered_formats",
    "schema_files",
]
