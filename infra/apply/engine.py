"""Topics go to Pulumi's engine as messages of its protocol, not as `Resource` objects.

For each resource object the Python SDK makes ten tasks, a stack trace and four blocking debug messages: with
thousands of topics that is most of a preview's time. No topic's outputs are used here: none of it is needed.
"""

import asyncio
from typing import Any

import attrs
import grpc  # type: ignore[import-untyped]
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor, handle_grpc_error

from infra.apply.registration import TopicResource
from infra.apply.stack_state import TOPIC_TYPE


@attrs.frozen
class TopicParent:
    """What the topics of one component have in common, as the engine names it."""

    urn: str
    provider: str
    hook: str

    async def register(self, topic: TopicResource) -> bool:
        """Register one topic; when the engine has carried it out, return whether it succeeded.

        Raises what the SDK raises when the engine gives up: `pulumi.RunError` or `Exception` with its text.
        """
        monitor: Any = get_monitor()
        try:
            answer = await asyncio.to_thread(monitor.RegisterResource, self._request(topic))
        except grpc.RpcError as error:
            handle_grpc_error(error)
        return bool(answer.result == resource_pb2.Result.SUCCESS)

    def _request(self, topic: TopicResource) -> resource_pb2.RegisterResourceRequest:
        inputs = struct_pb2.Struct()
        inputs.update(topic.inputs)
        hooks = [self.hook] if topic.guarded else []
        return resource_pb2.RegisterResourceRequest(
            type=TOPIC_TYPE,
            name=topic.name,
            parent=self.urn,
            custom=True,
            object=inputs,
            provider=self.provider,
            protect=topic.protect,
            retainOnDelete=topic.retain,
            importId=topic.name if topic.is_live else "",
            ignoreChanges=topic.ignored,
            hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(before_delete=hooks),
            acceptSecrets=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
        )
