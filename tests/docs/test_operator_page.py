"""docs/operator.md says what the code does."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

from wavetank.controller.metrics import Metrics
from wavetank.controller.queue import Result
from wavetank.controller.settings import Settings, from_environment

PAGE = (Path(__file__).parents[2] / "docs" / "operator.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| `")
]


def test_the_page_lists_every_metric_with_its_type_and_labels() -> None:
    metrics = Metrics("test")
    metrics.runs({"waiting": 0})
    metrics.rollout("b", "m", "scored")
    metrics.stage("act", 1)
    metrics.reward("b", "m", "v", 1)
    metrics.attempt_failed("PodDeleted")
    metrics.looked("Run", Result.DONE, 1)
    metrics.requested("get", "pods", 200, 1)
    metrics.missed("runs")
    metrics.read_ages_from(lambda: {"pods": 0.0})

    in_code = {}
    for family in metrics.registry.collect():
        labels = {name for sample in family.samples for name in sample.labels} - {"le"}
        name, kind = family.name, family.type
        if kind == "counter":
            name += "_total"
        if kind == "info":
            name, kind = f"{name}_info", "gauge"
        if name.startswith("wavetank_"):
            in_code[name] = (kind, labels)

    in_page = {
        row[0].strip("`"): (row[1], set(re.findall(r"\w+", row[2])))
        for row in ROWS
        if row[0].startswith("`wavetank_")
    }
    assert in_page == in_code


def test_the_page_lists_every_setting_with_its_default() -> None:
    in_page = {
        row[0].strip("`").removeprefix("WAVETANK_"): row[1].strip("`")
        for row in ROWS
        if row[0].startswith("`WAVETANK_")
    }
    in_code = {
        field.name.upper(): "" if field.default in (MISSING, None) else f"{field.default}"
        for field in fields(Settings)
    }
    in_code["CONTEXT"] = ""

    assert in_page == {name: default.removesuffix(".0") for name, default in in_code.items()}


def test_the_names_in_the_page_are_read() -> None:
    environment = {
        row[0].strip("`"): row[1].strip("`") or "given"
        for row in ROWS
        if row[0].startswith("`WAVETANK_")
    }

    settings = from_environment(environment)

    assert settings.kubeconfig is not None
    assert (settings.version, settings.kubeconfig.context) == ("given", "given")
