"""What a run sets out to do, and the repairs: changes of the cluster that no topic resource can show.

The inputs of `Setup` change when there is something to repair, so that a preview shows it, and its hook makes
the change when the engine gets there: before the application's topics are registered.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from infra.apply.cluster_writer import ClusterWriter
from infra.apply.registration import Repair
from infra.apply.stack_state import SETUP_TYPE, Repaired


class Setup(pulumi.ComponentResource):
    """What a run sets out to do, remembered before it does it, and the repairs.

    Inputs: the latest `repairs`, topic name → text, and how many runs had any, for the same repair may be due
    again. Output `topics`: as a finished setup records them, ids empty. A later run thus knows the topics of
    one that was interrupted as its own.
    """

    def __init__(
        self,
        name: str,
        repairs: Sequence[Repair],
        writer: ClusterWriter,
        *,
        latest: Repaired,
        topics: Mapping[str, Any],
        opts: pulumi.ResourceOptions,
    ) -> None:
        if repairs:
            latest = Repaired(latest.times + 1, {repair.name: repair.text for repair in repairs})
            hook = pulumi.ResourceHook(f"headwater:repair:{name}", lambda _: writer.repair(repairs))
            binding = pulumi.ResourceHookBinding(before_create=[hook], before_update=[hook])
            opts = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(hooks=binding))
        inputs = {"repairs": latest.texts, "repaired": latest.times}
        super().__init__(SETUP_TYPE, name, inputs, opts)
        self.register_outputs({**inputs, "topics": topics})
