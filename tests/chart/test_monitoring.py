"""Dashboard and alerts ask only for metrics and labels that the operator has."""

import json
import re
from collections.abc import Iterator

import pytest

from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Result
from wavetank.testing import chart

pytestmark = pytest.mark.chart

FROM_PROMETHEUS = {"job", "namespace", "pod", "instance"}
"""Labels that are the target's."""

DASHBOARD = json.loads((chart.CHART / "files" / "dashboard.json").read_text())


def known() -> dict[str, set[str]]:
    """The operator's metrics with their labels, everything told once."""
    metrics = Metrics("0")
    metrics.runs({"running": 1})
    metrics.rollout("crm", "none", "scored")
    metrics.stage("act", 1)
    metrics.reward("crm", "none", "reward", 1)
    metrics.attempt_failed("Evicted")
    metrics.waited(1)
    metrics.looked("Run", Result.DONE, 1)
    metrics.requested("get", "runs", 200, 1)
    metrics.missed("runs")
    metrics.read_ages_from(lambda: {"runs": 1})
    return {
        sample.name: set(sample.labels)
        for family in metrics.registry.collect()
        for sample in family.samples
    }


def alerts() -> Iterator[str]:
    for item in chart.documents(chart.rendered("namespaced")):
        if item["kind"] == "PrometheusRule":
            yield from (rule["expr"] for group in item["spec"]["groups"] for rule in group["rules"])


def panels() -> Iterator[str]:
    for panel in DASHBOARD["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def variables() -> Iterator[str]:
    """The query of each variable, written as the sum by the label that it lists."""
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
            assert match is not None
            yield f"sum by ({match[2]}) ({match[1]})"


@pytest.mark.parametrize("expression", [*panels(), *variables()])
def test_the_dashboard_asks_for_what_there_is(expression: str):
    assert_known(expression)


def test_alerts_ask_for_what_there_is():
    expressions = list(alerts())

    assert len(expressions) == 5
    for expression in expressions:
        assert_known(expression)


def assert_known(expression: str) -> None:
    metrics = known()
    asked = re.findall(r"\b((?:wavetank|process|python)_\w+)(?:\{([^}]*)\})?", expression)
    assert asked, "asks for nothing"
    grouped = {
        label.strip()
        for names in re.findall(r"\bby \(([^)]*)\)", expression)
        for label in names.split(",")
    }
    for name, matchers in asked:
        assert name in metrics, name
        labels = set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers))
        assert labels <= metrics[name] | FROM_PROMETHEUS, name
        assert grouped <= metrics[name] | FROM_PROMETHEUS, name


def test_every_metric_of_the_operators_own_is_on_the_dashboard():
    asked = " ".join(panels())

    roots = {
        re.sub(r"_(total|bucket|sum|count|info)$", "", name)
        for name in known()
        if name.startswith("wavetank_")
    }
    assert {root for root in roots if root not in asked} == set()


def test_the_dashboard_names_no_data_source_of_its_own():
    sources = {
        json.dumps(item["datasource"])
        for panel in DASHBOARD["panels"]
        for item in [panel, *panel.get("targets", ())]
        if "datasource" in item
    }

    assert sources == {json.dumps({"type": "prometheus", "uid": "${datasource}"})}
    assert DASHBOARD["templating"]["list"][0]["type"] == "datasource"


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        own = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not own & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= own

    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


def test_grafanas_sidecar_finds_the_dashboard():
    settings = "enabled=true", "namespace=monitoring", "folder=Wavetank", "labelValue=yes"
    asked = chart.template(
        "--set",
        ",".join(f"monitoring.dashboard.{setting}" for setting in settings),
        "--show-only",
        "templates/monitoring/dashboard.yaml",
    )

    (found,) = chart.documents(asked.stdout)
    assert found["metadata"]["namespace"] == "monitoring"
    assert found["metadata"]["labels"]["grafana_dashboard"] == "yes"
    assert found["metadata"]["annotations"] == {"grafana_folder": "Wavetank"}
    assert json.loads(found["data"]["wavetank.json"]) == DASHBOARD


def test_the_service_monitor_selects_the_metrics_service_by_the_ports_name():
    objects = chart.documents(chart.rendered("namespaced"))
    (monitor,) = (item for item in objects if item["kind"] == "ServiceMonitor")

    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    selected = [
        (item["metadata"]["name"], [port["name"] for port in item["spec"]["ports"]])
        for item in objects
        if item["kind"] == "Service" and wanted <= item["metadata"]["labels"].items()
    ]
    assert selected == [("wavetank-operator-metrics", ["metrics"])]
    assert [endpoint["port"] for endpoint in monitor["spec"]["endpoints"]] == ["metrics"]


def test_nothing_for_prometheus_or_grafana_is_installed_unasked():
    kinds = {item["kind"] for item in chart.documents(chart.rendered("default"))}

    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
