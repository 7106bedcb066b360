"""The one way a status is written: server-side apply, and never over a change not yet seen."""

from wavetank.api.fields import ObjectMeta, StatusModel
from wavetank.kube.client import Client
from wavetank.kube.errors import Conflict, NotFound
from wavetank.kube.objects import Resource


async def write_status(
    client: Client, resource: Resource, meta: ObjectMeta, status: StatusModel
) -> bool:
    """Write the status of an object as it was read.

    Returns:
        False when it has been changed or deleted since: the next look decides on that.

    Raises:
        ClusterError: If the API server did not answer.
    """
    try:
        await client.apply(
            resource,
            meta.namespace,
            meta.name,
            {"status": status.document()},
            resource_version=meta.resource_version,
            subresource="status",
        )
    except (Conflict, NotFound):
        return False
    return True
