"""What tests of the chart share: rendering it and finding objects in what comes out."""

import pytest

from wavetank.kube.objects import Manifest
from wavetank.testing import chart


@pytest.fixture(params=["default", "namespaced", "demo"])
def values(request: pytest.FixtureRequest) -> str:
    """The name of a set of values."""
    return str(request.param)


@pytest.fixture
def objects(values: str) -> list[Manifest]:
    """What that set of values renders to."""
    return chart.documents(chart.rendered(values))
