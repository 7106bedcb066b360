"""A Run's plan. Apart from ``wire``, since no program in a Pod reads it: importing it has a price."""

from wavetank.api.fields import Resources
from wavetank.api.wire import BundleSet, Number, TaskInfo, Wire


class Plan(Wire):
    """What a Run will do, pinned before its first Pod: key ``plan`` of ConfigMap ``<run>-plan``."""

    run: str
    """UID of the Run."""
    benchmark: str
    benchmark_generation: int
    tasks: list[TaskInfo]
    """After include, exclude, limit and seed, in ordinal order."""
    bundles: BundleSet
    pass_threshold: Number = 1.0
    range_min: Number = 0.0
    range_max: Number = 1.0
    world_resources: Resources | None = None
    """``spec.resources`` of the World."""
    runtime_class_name: str | None = None
    """``spec.runtimeClassName`` of the World."""
