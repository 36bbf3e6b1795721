"""Reports of problems, plans, drifts and compiled applications, as text, JSON, Markdown, HTML and pictures.

Only rendering belongs here. It reads no files but its own templates, and the guide to problems.
"""

from headwater.report.compiled import compile_json, problem_json
from headwater.report.plan_text import application_text, plan_text
from headwater.report.problems import problem_text, problems_text

__all__ = ["application_text", "compile_json", "plan_text", "problem_json", "problem_text", "problems_text"]
