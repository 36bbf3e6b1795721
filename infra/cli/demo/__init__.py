"""`headwater demo`: the whole story on a real Kafka broker and the real Pulumi engine, told step by step.

`story` lists the steps as values: what is done (`acts`), what should be seen (`observation`). `stage` is the
world they happen in, `telling` the printed page, `run` the loop.
"""
