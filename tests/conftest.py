"""What all tests share: markers by folder, the order of the tiers, Hypothesis's profiles."""

import os
from pathlib import Path

import hypothesis
import pytest

TESTS = Path(__file__).parent
# The quick ones first, and a cluster is not started for a change that a unit test refuses.
TIERS = ("unit", "component", "docs", "chart", "cluster")

# The same examples in every run of CI; no deadline, since a shared machine stalls at times.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("dev", deadline=None)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "dev")


def _tier(item: pytest.Item) -> str:
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    return folder if folder in TIERS else "unit"


# First, so that `-m` sees the markers given here.
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        tier = _tier(item)
        if tier != "unit":
            item.add_marker(tier)
    items.sort(key=lambda item: TIERS.index(_tier(item)))
