"""`headwater demo`: a sequence of steps on a real Kafka broker with the real Pulumi engine.

`steps` lists the steps as values: their `actions` and the expected `observation`. `environment` is the broker
and the Pulumi project that they run in, `output` prints, `run` runs all steps.
"""
