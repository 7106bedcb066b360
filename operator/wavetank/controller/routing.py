"""Finds the World, Benchmark or Run that an object of the cluster belongs to."""

from collections.abc import Mapping

from wavetank.controller.queue import Key
from wavetank.core.identity import GROUP
from wavetank.kube.objects import JOBS, Manifest, ObjectName, controller_of, name_of


def key_of(item: Manifest, jobs: Mapping[ObjectName, Manifest]) -> Key | None:
    """Return the key of the object of ours that controls this one, directly or by a Job.

    Args:
        item: A Pod or Job.
        jobs: The Jobs that are known, to find the owner of a Job's Pod.

    Returns:
        None when nothing of ours controls it, or its Job is not known (any more).
    """
    owner = controller_of(item)
    if owner is None:
        return None
    namespace = name_of(item).namespace
    if owner.api_version.partition("/")[0] == GROUP:
        return Key(owner.kind, namespace, owner.name)
    if (owner.api_version, owner.kind) == (JOBS.api_version, JOBS.kind):
        job = jobs.get(ObjectName(namespace, owner.name))
        if job is not None and job["metadata"]["uid"] == owner.uid:
            return key_of(job, {})
    return None
