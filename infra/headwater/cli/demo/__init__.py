"""`headwater demo`: a sequence of steps on a real Kafka broker with the real Pulumi engine.

`steps` lists the steps as values: their `actions`, and the observation that is expected. `environment` is the
broker and the Pulumi project that they run in, `command` runs all steps and prints what they did.
"""
