"""Reports of a `Drift`: text, JSON, Markdown, JUnit XML and an HTML page.

`headwater.planner.drift` finds the differences; the modules here render them.
"""
