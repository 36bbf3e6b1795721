"""A document with a windowed count."""


def count(window: str, materialized: str = "counts", config: str = "") -> str:
    return f"""
    application: {{id: app, config: {{{config}}}}}
    topology:
      - stream: {{topic: in}}
      - groupByKey: {{}}
      - windowedBy: {{{window}}}
      - count: {{materialized: {materialized}}}
    """
