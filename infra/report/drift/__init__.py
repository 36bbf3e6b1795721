"""Renders a `Drift` as text, JSON, Markdown, JUnit XML and a page for people.

Belongs here: wording and layouts of drift reports. What differs is found by `infra.planner.drift`.
"""
