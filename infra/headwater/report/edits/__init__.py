"""Reports of an `Edit`: text, JSON and Markdown.

`headwater.planner.edits` finds the verdicts; the modules here render them.
"""
