"""The schemas of registered formats that a test gives to `TopologyTestDriver`."""

import json
from collections.abc import Iterable, Mapping

import attrs

from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.preflight import compiler_missing
from headwater_spark.engine.serdes import CompilerUnavailableError, schema_type, subject
from headwater_spark.worker.protobuf_schemas import compile_schema


def find_no_schema(_id: int) -> str | None:
    """Return None (`SchemaOf`): all schemas of the registry are given, with ids of the driver."""
    return None


@attrs.frozen
class GivenSchemas:
    """Finds the schemas of registered formats in `texts`, subject → text, in place of a registry."""

    texts: Mapping[str, str]

    def __call__(self, formats: Iterable[str], application: Application) -> Mapping[str, str]:
        schemas: dict[str, str] = {}
        problems: list[Problem] = []
        for number, name in enumerate(formats, start=1):
            found = self._schema(number, name, application)
            if isinstance(found, Problem):
                problems.append(found)
            else:
                schemas[name] = found
        if problems:
            raise ProblemsError(problems)
        return schemas

    def _schema(self, number: int, name: str, application: Application) -> str | Problem:
        named = subject(name) or ""
        if named not in self.texts:
            return _schema_not_given(named, self.texts, application)
        text = self.texts[named]
        try:
            compiled = compile_schema(text) if schema_type(name) == "PROTOBUF" else text
        except CompilerUnavailableError as error:
            return compiler_missing(name, str(error), application)
        except ValueError as error:
            return _schema_unusable(named, str(error), application)
        return json.dumps({"id": number, "schema": compiled})


def _schema_not_given(named: str, given: Iterable[str], application: Application) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"The schema of the subject {named} is not given.",
        expected=f"schemas={{'{named}': ...}}",
        found=f"subjects: {', '.join(sorted(given)) or 'none'}",
        why="TopologyTestDriver asks no schema registry, and records are read and written with the schema.",
        fix="Pass the text of the schema to TopologyTestDriver, as argument `schemas`.",
    )


def _schema_unusable(named: str, reason: str, application: Application) -> Problem:
    return Problem(
        code=ProblemCode.UNSUPPORTED_FORMAT,
        application=application.id,
        summary=f"The schema of the subject {named} cannot be used: {reason}.",
        expected="a Protobuf schema that imports no other file",
        found=named,
        why="Records cannot be read or written without it.",
        fix="Correct the text of the schema, or the format's name.",
    )
