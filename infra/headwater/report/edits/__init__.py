"""Reports of an `Edit`: text, JSON, Markdown and HTML.

`headwater.planner.edits` finds the verdicts; the modules here render them.
"""
