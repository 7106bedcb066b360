"""Who may do what, verb by verb: nothing more than the code does, and nothing less.

What is enough is seen on the real cluster, where the operator has these roles and no others.
"""

from collections.abc import Iterable

import pytest

from wavetank.kube.objects import Manifest
from wavetank.testing import chart

pytestmark = pytest.mark.chart

# (group, resource, names) -> verbs
Table = dict[tuple[str, str, tuple[str, ...]], set[str]]

OWN = "wavetank.dev"

SERVED: Table = {
    (OWN, "worlds", ()): {"get", "list", "watch"},
    (OWN, "benchmarks", ()): {"get", "list", "watch"},
    (OWN, "runs", ()): {"get", "list", "watch"},
    (OWN, "worlds/status", ()): {"patch"},
    (OWN, "benchmarks/status", ()): {"patch"},
    (OWN, "runs/status", ()): {"patch"},
    # For blockOwnerDeletion, where the cluster checks it (OpenShift does).
    (OWN, "worlds/finalizers", ()): {"update"},
    (OWN, "benchmarks/finalizers", ()): {"update"},
    (OWN, "runs/finalizers", ()): {"update"},
    ("", "pods", ()): {"create", "delete", "get", "list", "watch"},
    ("batch", "jobs", ()): {"create", "delete", "get", "list", "watch"},
    # Plans and ledgers are created, ledgers listed and patched, Worlds' bundles read.
    ("", "configmaps", ()): {"create", "get", "list", "patch"},
    # Tokens are applied, never read.
    ("", "secrets", ()): {"create", "patch"},
    ("events.k8s.io", "events", ()): {"create"},
}
"""In the namespaces that the operator serves."""

HOME: Table = {
    ("", "secrets", ()): {"create"},  # RBAC cannot bind a POST to a name
    ("", "secrets", ("wavetank-signing-key",)): {"get"},
    ("", "configmaps", ("wavetank-public-key",)): {"create", "patch"},
    ("", "services", ("wavetank-store",)): {"get"},
}
"""In the operator's own namespace."""

STORE_ACCESS: Table = {("", "services/proxy", ("wavetank-store:8081",)): {"get", "update"}}

VIEW: Table = {
    (OWN, kind, ()): {"get", "list", "watch"} for kind in ("worlds", "benchmarks", "runs")
}
EDIT: Table = {
    (OWN, kind, ()): {"create", "delete", "deletecollection", "patch", "update"}
    for kind in ("worlds", "benchmarks", "runs")
}
EDIT[OWN, "worlds/finalizers", ()] = {"update"}  # a pushed World owns its bundle

OPERATOR = {"kind": "ServiceAccount", "name": "wavetank-operator", "namespace": chart.NAMESPACE}


def table(role: Manifest) -> Table:
    found: Table = {}
    for rule in role["rules"]:
        assert set(rule) <= {"apiGroups", "resources", "resourceNames", "verbs"}
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                key = (group, resource, tuple(rule.get("resourceNames", ())))
                assert key not in found, "said twice"
                found[key] = set(rule["verbs"])
    return found


def roles(objects: Iterable[Manifest]) -> dict[tuple[str, str | None, str], Table]:
    return {place(item): table(item) for item in objects if item["kind"] in ("Role", "ClusterRole")}


def bindings(objects: Iterable[Manifest]) -> dict[tuple[str, str | None, str], object]:
    return {
        place(item): (item["roleRef"]["kind"], item["roleRef"]["name"], item["subjects"])
        for item in objects
        if item["kind"].endswith("Binding")
    }


def place(item: Manifest) -> tuple[str, str | None, str]:
    return item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]


def test_serving_all_namespaces():
    objects = chart.documents(chart.rendered("default"))

    assert roles(objects) == {
        ("ClusterRole", None, "wavetank-operator-wavetank-system"): SERVED,
        ("ClusterRole", None, "wavetank-view-wavetank-system"): VIEW,
        ("ClusterRole", None, "wavetank-edit-wavetank-system"): EDIT,
        ("Role", "wavetank-system", "wavetank-operator"): HOME,
        ("Role", "wavetank-system", "wavetank-store-access"): STORE_ACCESS,
    }
    assert bindings(objects) == {
        ("ClusterRoleBinding", None, "wavetank-operator-wavetank-system"): (
            "ClusterRole",
            "wavetank-operator-wavetank-system",
            [OPERATOR],
        ),
        ("RoleBinding", "wavetank-system", "wavetank-operator"): (
            "Role",
            "wavetank-operator",
            [OPERATOR],
        ),
    }


def test_serving_one_namespace():
    objects = chart.documents(chart.rendered("namespaced"))

    assert roles(objects) == {
        ("Role", "team-a", "wavetank-operator-wavetank-system"): SERVED,
        ("Role", "wavetank-system", "wavetank-operator"): HOME,
        ("Role", "wavetank-system", "wavetank-store-access"): STORE_ACCESS,
    }
    group = {"kind": "Group", "name": "researchers", "apiGroup": "rbac.authorization.k8s.io"}
    assert bindings(objects) == {
        ("RoleBinding", "team-a", "wavetank-operator-wavetank-system"): (
            "Role",
            "wavetank-operator-wavetank-system",
            [OPERATOR],
        ),
        ("RoleBinding", "wavetank-system", "wavetank-operator"): (
            "Role",
            "wavetank-operator",
            [OPERATOR],
        ),
        ("RoleBinding", "wavetank-system", "wavetank-store-access"): (
            "Role",
            "wavetank-store-access",
            [group],
        ),
    }


def test_the_clusters_own_roles_are_extended():
    objects = chart.documents(chart.rendered("default"))

    prefix = "rbac.authorization.k8s.io/aggregate-to-"
    extended = {
        item["metadata"]["name"]: sorted(
            label.removeprefix(prefix)
            for label, value in item["metadata"]["labels"].items()
            if label.startswith(prefix) and value == "true"
        )
        for item in objects
        if item["kind"] == "ClusterRole"
    }
    assert extended == {
        "wavetank-operator-wavetank-system": [],
        "wavetank-view-wavetank-system": ["admin", "edit", "view"],
        "wavetank-edit-wavetank-system": ["admin", "edit"],
    }


def test_the_store_has_an_account_without_rights_or_token(objects: list[Manifest]):
    subjects = [
        subject["name"]
        for item in objects
        if item["kind"].endswith("Binding")
        for subject in item["subjects"]
    ]
    accounts = {
        item["metadata"]["name"]: item["automountServiceAccountToken"]
        for item in objects
        if item["kind"] == "ServiceAccount"
    }
    mounted = {
        item["metadata"]["name"]: (pod["serviceAccountName"], pod["automountServiceAccountToken"])
        for item in objects
        if item["kind"] == "Deployment"
        for pod in [item["spec"]["template"]["spec"]]
    }

    assert "wavetank-store" not in subjects
    assert accounts == {"wavetank-operator": False, "wavetank-store": False}
    assert mounted == {
        "wavetank-operator": ("wavetank-operator", True),
        "wavetank-store": ("wavetank-store", False),
    }
