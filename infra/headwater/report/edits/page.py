"""An edit as an HTML page, for those who review it without the command line."""

from collections.abc import Sequence

import attrs

from headwater.model.problems import Severity
from headwater.planner.edits import ApplicationEdit, Edit, OperatorEdit, SettingEdit, TopicEdit
from headwater.planner.phrases import listed
from headwater.report.edits import texts
from headwater.report.problems import SEVERITY_NOUNS
from headwater.report.templating import load_template

_LEVELS = (*(severity.value for severity in Severity), "ok")
_NOUNS = {Severity.ERROR: "topic that loses data", Severity.WARNING: "warning", Severity.INFO: "hint"}


@attrs.frozen
class Section:
    """One application; `level` is the severity of its most severe topic, or `ok`."""

    part: ApplicationEdit
    anchor: str

    @property
    def summary(self) -> str:
        return texts.application_summary(self.part)

    @property
    def restart(self) -> str:
        return texts.restart_sentence(self.part)

    @property
    def topics(self) -> Sequence[TopicEdit]:
        """The topics that are not simply kept, the most severe ones first."""
        return sorted(texts.changed_topics(self.part), key=lambda topic: _LEVELS.index(topic.severity.value))

    @property
    def kept(self) -> Sequence[str]:
        return sorted(texts.kept_topics(self.part))

    @property
    def level(self) -> str:
        return self.topics[0].severity.value if self.topics else "ok"

    @property
    def noun(self) -> str:
        """The level in words; empty if all topics are kept."""
        return SEVERITY_NOUNS[self.topics[0].severity] if self.topics else ""

    @property
    def operators(self) -> Sequence[tuple[OperatorEdit, str, str]]:
        """The edited operators: what changes, and the consequence."""
        return [
            (each, texts.operator_values(each), texts.operator_consequence(each))
            for each in self.part.operators
        ]

    @property
    def settings(self) -> Sequence[tuple[SettingEdit, str]]:
        """The settings that have other values, and what changes."""
        return [(each, texts.setting_values(each)) for each in self.part.settings]

    @property
    def still_lost(self) -> str:
        return listed(self.part.still_lost) if self.part.still_lost else ""


def edit_page(edit: Edit) -> str:
    """Return the HTML text: a page that needs no other file and runs no script."""
    sections = [Section(part, f"a{number}") for number, part in enumerate(edit.applications)]
    topics = [topic for section in sections for topic in section.topics]
    return load_template("change.html.j2").render(
        edit=edit,
        summary=texts.edit_summary(edit),
        remarks=list(texts.report_remarks(edit)),
        sections=sorted(sections, key=lambda section: _LEVELS.index(section.level)),
        counts=[
            (severity.value, _NOUNS[severity], sum(topic.severity is severity for topic in topics))
            for severity in Severity
        ],
        kept=sum(len(section.kept) for section in sections),
    )
