"""The examples as kubectl sends them: admitted by the real API server, from any of their forms."""

from collections.abc import Callable
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.usefixtures("crds")


@pytest.mark.parametrize("server_side", [True, False], ids=["server-side", "client-side"])
@pytest.mark.parametrize(
    ("option", "path", "created"),
    [
        (
            "-f",
            "01-crm/all-in-one.yaml",
            {"world/slack", "world/crm", "benchmark/crm", "run/crm-oracle", "run/crm-nop"},
        ),
        (
            "-k",
            "01-crm",
            {
                "configmap/slack-world",
                "configmap/crm-bench",
                "world/slack",
                "world/crm",
                "benchmark/crm",
            },
        ),
        ("-f", "01-crm/run-scripted.yaml", {"run/crm-scripted"}),
        (
            "-f",
            "02-calendar/all-in-one.yaml",
            {
                *("world/mail", "world/calendar", "benchmark/calendar"),
                *("run/calendar-oracle", "run/calendar-nop"),
            },
        ),
        (
            "-k",
            "02-calendar",
            {
                *("configmap/mail-world", "configmap/calendar-bench"),
                *("world/mail", "world/calendar", "benchmark/calendar"),
            },
        ),
        ("-f", "02-calendar/run-scripted.yaml", {"run/calendar-scripted"}),
        ("-f", "03-warehouse/run-oracle.yaml", {"run/warehouse-oracle"}),
    ],
    ids=[
        *("crm all in one", "crm kustomize", "crm scripted"),
        *("calendar all in one", "calendar kustomize", "calendar scripted"),
        "warehouse run",
    ],
)
def test_an_example_is_admitted(
    kubectl: Callable[..., str],
    namespace: str,
    option: str,
    path: str,
    created: set[str],
    server_side: bool,
):
    printed = kubectl(
        "apply",
        f"--server-side={server_side}".lower(),
        "--dry-run=server",
        "-n",
        namespace,
        option,
        EXAMPLES / path,
        "-o",
        "name",
    )

    assert {line.replace(".wavetank.dev", "") for line in printed.split()} == created
