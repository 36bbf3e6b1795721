"""Registration of topics and ACLs by messages of Pulumi's engine protocol, without `Resource` objects.

For each resource object, the Python SDK creates ten tasks, a stack trace and four blocking debug messages.
With thousands of topics that is most of a preview's time, and Headwater does not use the objects' outputs.
"""

from typing import Any

import attrs
import grpc  # type: ignore[import-untyped]
from google.protobuf import struct_pb2  # type: ignore[import-untyped]
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.settings import get_monitor, handle_grpc_error

from headwater.pulumi.registration import AclResource, TopicResource
from headwater.pulumi.stack_state import ACL_TYPE, TOPIC_TYPE


@attrs.frozen
class TopicParent:
    """The component of topics and ACLs: its URN, provider reference and deletion hook."""

    urn: str
    provider: str
    hook: str

    def register(self, resource: TopicResource | AclResource) -> bool:
        """Register a resource, block until the engine has answered, and return whether it succeeded.

        Raises:
            pulumi.RunError: The engine is shutting down (the SDK may also raise `Exception` with its text).
        """
        monitor: Any = get_monitor()
        try:
            answer = monitor.RegisterResource(self._request(resource))
        except grpc.RpcError as error:
            handle_grpc_error(error)
        return bool(answer.result == resource_pb2.Result.SUCCESS)

    def _request(self, resource: TopicResource | AclResource) -> resource_pb2.RegisterResourceRequest:
        inputs = struct_pb2.Struct()
        inputs.update(resource.inputs)
        properties = _of_topic(resource) if isinstance(resource, TopicResource) else _of_acl(resource)
        hooks = [self.hook] if resource.guarded else []
        return resource_pb2.RegisterResourceRequest(
            name=resource.name,
            parent=self.urn,
            custom=True,
            object=inputs,
            provider=self.provider,
            retainOnDelete=resource.retain,
            hooks=resource_pb2.RegisterResourceRequest.ResourceHooksBinding(before_delete=hooks),
            acceptSecrets=True,
            supportsPartialValues=True,
            supportsResultReporting=True,
            **properties,
        )


def _of_topic(topic: TopicResource) -> dict[str, Any]:
    return {
        "type": TOPIC_TYPE,
        "protect": topic.protect,
        "importId": topic.name if topic.is_live else "",
        "ignoreChanges": topic.ignored,
    }


def _of_acl(acl: AclResource) -> dict[str, Any]:
    aliases = [acl.alias] if acl.alias is not None else []
    # Explicit, because otherwise the ACL inherits the component's protection.
    return {"type": ACL_TYPE, "protect": False, "importId": acl.import_id, "aliasURNs": aliases}
