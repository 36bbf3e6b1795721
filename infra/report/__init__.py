"""Renders what the other parts decided, problems, plans, compiled applications, as text, JSON and pictures.

Belongs here: wording, tables, layouts. Reads no file but its own templates, decides nothing.
"""

from infra.report.compile_json import compile_json, problem_json
from infra.report.plan_text import plan_text
from infra.report.problem_text import problem_text, problems_text

__all__ = ["compile_json", "plan_text", "problem_json", "problem_text", "problems_text"]
