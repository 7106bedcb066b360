"""What a real API server answers, and what the client makes of it."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from wavetank.kube.client import Client, open_client
from wavetank.kube.connection import Kubeconfig
from wavetank.kube.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Unauthorized,
    Unavailable,
)
from wavetank.kube.objects import (
    CONFIGMAPS,
    JOBS,
    NAMESPACES,
    PODS,
    SERVICES,
    WORLDS,
    Manifest,
    Resource,
    uid_of,
    version_of,
)
from wavetank.kube.proxy import Answer, ServiceProxy
from wavetank.kube.transport import ClientSettings
from wavetank.kube.watch import Change, Watch
from wavetank.testing.cluster import kubeconfig_of_a_service_account, until

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
PAUSE = "wavetank.local/pause:1"
"""Does nothing; cluster.py brings it into the cluster."""


def a_configmap(name: str | None = None, **data: str) -> Manifest:
    return {"metadata": {"name": name or f"cm-{uuid.uuid4().hex[:8]}"}, "data": data}


def a_pod(name: str, **pod: object) -> Manifest:
    """A Pod that the restricted standard allows; it is never to run."""
    container = {
        "name": "main",
        "image": "none.invalid/none",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    spec = {
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "schedulingGates": [{"name": "wavetank.dev/never"}],
        "containers": [container],
        **pod,
    }
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def own_namespace(client: Client) -> AsyncIterator[str]:
    """A namespace for one test that spoils it."""
    name = f"wt-client-{uuid.uuid4().hex[:6]}"
    created = await client.create(NAMESPACES, None, {"metadata": {"name": name}})
    yield name
    await client.delete(NAMESPACES, None, name, uid=uid_of(created))


async def test_what_was_created_is_found_until_it_is_deleted(
    client: Client, namespace: str
) -> None:
    created = await client.create(CONFIGMAPS, namespace, a_configmap("once", a="1"))

    assert await client.get(CONFIGMAPS, namespace, "once") == created
    assert await client.delete(CONFIGMAPS, namespace, "once", uid=uid_of(created))
    assert await client.find(CONFIGMAPS, namespace, "once") is None
    assert not await client.delete(CONFIGMAPS, namespace, "once", uid=uid_of(created))


async def test_a_name_that_is_taken_is_refused(client: Client, namespace: str) -> None:
    await client.create(CONFIGMAPS, namespace, a_configmap("taken"))

    with pytest.raises(AlreadyExists, match=f'ConfigMap {namespace}: configmaps "taken" already'):
        await client.create(CONFIGMAPS, namespace, a_configmap("taken"))


async def test_only_the_object_with_the_uid_is_deleted(client: Client, namespace: str) -> None:
    first = await client.create(CONFIGMAPS, namespace, a_configmap("again"))
    await client.delete(CONFIGMAPS, namespace, "again", uid=uid_of(first))
    second = await client.create(CONFIGMAPS, namespace, a_configmap("again"))

    assert not await client.delete(CONFIGMAPS, namespace, "again", uid=uid_of(first))

    assert await client.get(CONFIGMAPS, namespace, "again") == second


async def test_a_pod_of_another_uid_is_not_deleted_either(client: Client, namespace: str) -> None:
    # Pods are deleted by another piece of the API server, whose words differ.
    pod = await client.create(PODS, namespace, a_pod("gated"))

    assert not await client.delete(PODS, namespace, "gated", uid=str(uuid.uuid4()))
    assert await client.delete(PODS, namespace, "gated", uid=uid_of(pod), grace_seconds=0)


async def test_a_list_in_parts_is_whole_and_its_items_say_what_they_are(
    kubeconfig: Path, namespace: str
) -> None:
    settings = ClientSettings(chunk=2)
    async with open_client(Kubeconfig(kubeconfig), settings) as client:
        for number in range(5):
            item = a_configmap(f"part-{number}")
            item["metadata"]["labels"] = {"parts": "5"}
            await client.create(CONFIGMAPS, namespace, item)

        listing = await client.list(CONFIGMAPS, namespace, label_selector="parts=5")

    assert [
        (item["apiVersion"], item["kind"], item["metadata"]["name"]) for item in listing.items
    ] == [("v1", "ConfigMap", f"part-{number}") for number in range(5)]
    assert listing.resource_version.isdigit()


async def test_a_list_of_metadata_has_nothing_else(client: Client, namespace: str) -> None:
    item = a_configmap("bare", a="1")
    item["metadata"]["labels"] = {"bare": "yes"}
    created = await client.create(CONFIGMAPS, namespace, item)

    listing = await client.list(
        CONFIGMAPS, namespace, label_selector="bare=yes", metadata_only=True
    )

    assert listing.items == [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": created["metadata"]}
    ]


async def test_a_patch_merges_and_null_removes(client: Client, namespace: str) -> None:
    created = await client.create(CONFIGMAPS, namespace, a_configmap(None, a="1", b="2"))

    patched = await client.merge_patch(
        CONFIGMAPS, namespace, created["metadata"]["name"], {"data": {"a": None, "c": "3"}}
    )

    assert patched["data"] == {"b": "2", "c": "3"}


async def test_of_two_swaps_on_one_version_the_second_is_refused(
    client: Client, namespace: str
) -> None:
    created = await client.create(CONFIGMAPS, namespace, a_configmap("swap", a="1"))
    seen = version_of(created)

    await client.merge_patch(
        CONFIGMAPS, namespace, "swap", {"data": {"a": "2"}}, resource_version=seen
    )
    with pytest.raises(Conflict):
        await client.merge_patch(
            CONFIGMAPS, namespace, "swap", {"data": {"a": "3"}}, resource_version=seen
        )

    assert (await client.get(CONFIGMAPS, namespace, "swap"))["data"] == {"a": "2"}


async def test_of_many_swaps_at_once_each_round_has_one_winner(
    client: Client, namespace: str
) -> None:
    created = await client.create(CONFIGMAPS, namespace, a_configmap("race"))

    async def swap(number: int) -> bool:
        patch = {"data": {f"key-{number}": "x"}}
        try:
            await client.merge_patch(
                CONFIGMAPS, namespace, "race", patch, resource_version=version_of(created)
            )
        except Conflict:
            return False
        return True

    won = await asyncio.gather(*(swap(number) for number in range(10)))

    assert won.count(True) == 1
    assert len((await client.get(CONFIGMAPS, namespace, "race"))["data"]) == 1


@pytest.mark.usefixtures("crds")
async def test_an_apply_owns_exactly_its_fields(client: Client, namespace: str) -> None:
    await client.apply(CONFIGMAPS, namespace, "applied", {"data": {"a": "1", "b": "2"}})
    await client.merge_patch(CONFIGMAPS, namespace, "applied", {"data": {"other": "3"}})

    applied = await client.apply(CONFIGMAPS, namespace, "applied", {"data": {"a": "4"}})

    # The patch went in under the same manager's name but another operation, so it stays.
    assert applied["data"] == {"a": "4", "other": "3"}


@pytest.mark.usefixtures("crds")
async def test_a_status_is_applied_once_per_version(client: Client, namespace: str) -> None:
    spec = {"source": {"inline": [{"path": "schema/world.json", "content": "{}"}]}}
    seen = await client.create(
        WORLDS,
        namespace,
        {
            "apiVersion": WORLDS.api_version,
            "kind": "World",
            "metadata": {"name": "status"},
            "spec": spec,
        },
    )
    status: Manifest = {"status": {"observedGeneration": 1}}

    written = await client.apply(
        WORLDS, namespace, "status", status, resource_version=version_of(seen), subresource="status"
    )
    assert (written["spec"], written["status"]) == (spec, {"observedGeneration": 1})

    with pytest.raises(Conflict):
        await client.apply(
            WORLDS,
            namespace,
            "status",
            {"status": {"observedGeneration": 2}},
            resource_version=version_of(seen),
            subresource="status",
        )


@pytest.mark.usefixtures("crds")
async def test_a_status_of_what_is_gone_creates_nothing(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        await client.apply(
            WORLDS, namespace, "gone", {"status": {"observedGeneration": 1}}, subresource="status"
        )


async def test_a_misspelt_field_is_refused(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid, match='unknown field "dta"'):
        await client.create(CONFIGMAPS, namespace, {"metadata": {"name": "a"}, "dta": {}})


async def test_a_wrong_name_is_refused_by_field(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid, match=f"ConfigMap {namespace} metadata.name: Invalid value"):
        await client.create(CONFIGMAPS, namespace, a_configmap("Not_A_Name"))


@pytest.mark.filterwarnings("ignore:Sending a large body")
@pytest.mark.parametrize("megabytes", [1.8, 2.5], ids=["for etcd", "for its client"])
async def test_what_is_too_large_is_not_tried_again(
    megabytes: float, client: Client, namespace: str
) -> None:
    pod = a_pod("large")
    pod["spec"]["containers"][0]["env"] = [{"name": "LARGE", "value": "x" * int(megabytes * 2**20)}]

    with pytest.raises(Invalid, match=r"too large|larger than max"):
        await client.create(PODS, namespace, pod)


async def test_a_namespace_that_is_not_there_is_not_found(client: Client) -> None:
    with pytest.raises(NotFound, match='namespaces "nowhere" not found'):
        await client.create(CONFIGMAPS, "nowhere", a_configmap())


def kinds_of(forbidden: Forbidden) -> dict[str, bool]:
    return {
        "quota": forbidden.is_quota,
        "terminating": forbidden.is_terminating_namespace,
        "pod security": forbidden.is_pod_security,
        "rbac": forbidden.is_missing_rbac,
    }


def only(kind: str) -> dict[str, bool]:
    return {name: name == kind for name in ("quota", "terminating", "pod security", "rbac")}


async def test_a_used_up_quota_is_told_apart(client: Client, own_namespace: str) -> None:
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}
    await client.create(QUOTAS, own_namespace, quota)

    async def refused() -> Forbidden | None:
        # The quota counts from when its controller has seen it.
        try:
            pod = await client.create(PODS, own_namespace, a_pod("refused"))
        except Forbidden as error:
            return error
        await client.delete(PODS, own_namespace, "refused", uid=uid_of(pod), grace_seconds=0)
        return None

    error = await until(refused)

    assert kinds_of(error) == only("quota")
    assert "exceeded quota: none" in error.reason_text


async def test_a_terminating_namespace_is_told_apart(client: Client, own_namespace: str) -> None:
    held = a_configmap("held")
    held["metadata"]["finalizers"] = ["wavetank.dev/test"]
    await client.create(CONFIGMAPS, own_namespace, held)
    seen = await client.get(NAMESPACES, None, own_namespace)
    await client.delete(NAMESPACES, None, own_namespace, uid=uid_of(seen))

    with pytest.raises(Forbidden) as raised:
        await client.create(CONFIGMAPS, own_namespace, a_configmap())

    await client.merge_patch(CONFIGMAPS, own_namespace, "held", {"metadata": {"finalizers": None}})
    assert kinds_of(raised.value) == only("terminating")


async def test_a_pod_below_the_namespaces_standard_is_told_apart(
    client: Client, namespace: str
) -> None:
    with pytest.raises(Forbidden) as raised:
        await client.create(PODS, namespace, a_pod("rooted", securityContext={}))

    assert kinds_of(raised.value) == only("pod security")


async def test_a_missing_role_is_told_apart(
    kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    poor = kubeconfig_of_a_service_account(kubeconfig, namespace, "poor", tmp_path)

    async with open_client(Kubeconfig(poor)) as client:
        with pytest.raises(Forbidden) as raised:
            await client.create(PODS, namespace, a_pod("refused"))

    assert kinds_of(raised.value) == only("rbac")


async def test_a_token_that_is_none_is_unauthorized(kubeconfig: Path, tmp_path: Path) -> None:
    path = kubeconfig_of_a_service_account(kubeconfig, "default", None, tmp_path)

    async with open_client(Kubeconfig(path)) as client:
        with pytest.raises(Unauthorized):
            await client.list(PODS, "default")


async def test_a_deleted_job_takes_its_pods_along(client: Client, namespace: str) -> None:
    pod = a_pod("unused", restartPolicy="Never")["spec"]
    job = await client.create(
        JOBS,
        namespace,
        {"metadata": {"name": "job"}, "spec": {"backoffLimit": 0, "template": {"spec": pod}}},
    )
    selector = f"batch.kubernetes.io/controller-uid={uid_of(job)}"

    async def pods() -> int:
        return len((await client.list(PODS, namespace, label_selector=selector)).items)

    async def is_there() -> bool:
        return await pods() == 1

    async def is_gone() -> bool:
        return await pods() == 0

    await until(is_there)
    await client.delete(JOBS, namespace, "job", uid=uid_of(job))
    await until(is_gone)


@asynccontextmanager
async def running(watch: Watch) -> AsyncIterator[None]:
    task = asyncio.create_task(watch.run())
    await watch.synced.wait()
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_watch_tells_what_happens(client: Client, namespace: str) -> None:
    told: list[tuple[Change, str]] = []
    watch = Watch(
        client,
        CONFIGMAPS,
        lambda change, item: told.append((change, item["metadata"]["name"])),
        namespace=namespace,
        label_selector="watched=yes",
    )

    async def all_told() -> bool:
        return len(told) == 3

    async with running(watch):
        item = a_configmap("seen")
        item["metadata"]["labels"] = {"watched": "yes"}
        await client.create(CONFIGMAPS, namespace, a_configmap("unseen"))
        created = await client.create(CONFIGMAPS, namespace, item)
        await client.merge_patch(CONFIGMAPS, namespace, "seen", {"data": {"a": "1"}})
        await client.delete(CONFIGMAPS, namespace, "seen", uid=uid_of(created))
        await until(all_told)

    assert told == [(change, "seen") for change in (Change.ADDED, Change.MODIFIED, Change.DELETED)]


async def test_a_watch_follows_objects_that_lose_and_gain_the_label(
    client: Client, namespace: str
) -> None:
    watch = Watch(
        client, CONFIGMAPS, lambda *_: None, namespace=namespace, label_selector="labelled=yes"
    )
    await client.create(CONFIGMAPS, namespace, a_configmap("labels"))

    async def label(value: str | None) -> None:
        patch = {"metadata": {"labels": {"labelled": value}}}
        await client.merge_patch(CONFIGMAPS, namespace, "labels", patch)

    async def is_known() -> bool:
        return len(watch.objects) == 1

    async def is_unknown() -> bool:
        return len(watch.objects) == 0

    async with running(watch):
        await label("yes")
        await until(is_known)
        await label(None)
        await until(is_unknown)


@pytest.fixture
async def service(client: Client, own_namespace: str) -> AsyncIterator[ServiceProxy]:
    """A Service that leads to a server of this test.

    The API server lets through only to Pods' own addresses; that of a Pod in the host's network is
    the host's.
    """

    async def echo(request: web.Request) -> web.Response:
        if request.headers.get("X-Wavetank-Token") != "made-up":
            return web.json_response({"error": {"type": "Unauthorized"}}, status=401)
        assert "Authorization" not in request.headers
        return web.Response(body=request.path.encode() + b" " + await request.read())

    application = web.Application(client_max_size=2**26)
    application.router.add_route("*", "/{path:.*}", echo)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "0.0.0.0", 0).start()  # noqa: S104 - the host's address is asked
        port = int(runner.addresses[0][1])
        yield await _proxy_to_the_host(client, own_namespace, port)
    finally:
        await runner.cleanup()


async def _proxy_to_the_host(client: Client, namespace: str, port: int) -> ServiceProxy:
    pod = {
        "metadata": {"name": "host", "labels": {"app": "host"}},
        "spec": {
            "hostNetwork": True,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "pause", "image": PAUSE}],
        },
    }
    await client.create(PODS, namespace, pod)
    ports = [{"port": port, "protocol": "TCP"}]
    await client.create(
        SERVICES,
        namespace,
        {"metadata": {"name": "echo"}, "spec": {"ports": ports, "selector": {"app": "host"}}},
    )
    proxy = ServiceProxy(client, namespace, "echo", port)

    async def is_reached() -> Answer | None:
        try:
            return await proxy.get("/", "made-up")
        except (NotFound, Unavailable):  # the API server looks for both in a cache
            return None

    await until(is_reached)
    return proxy


DIGEST_PATH = "/v1/bundles/sha256:" + "a" * 64


async def test_bytes_go_through_the_api_server_and_come_back(service: ServiceProxy) -> None:
    async def parts() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 2**16

    answer = await service.put(DIGEST_PATH, "made-up", parts())
    whole = await service.put(DIGEST_PATH, "made-up", b"x" * 2**22)

    assert answer == whole == Answer(200, DIGEST_PATH.encode() + b" " + b"x" * 2**22)
    async with service.download(DIGEST_PATH, "made-up") as download:
        assert (download.status, download.length) == (200, len(DIGEST_PATH) + 1)
        assert [part async for part in download.parts] == [DIGEST_PATH.encode() + b" "]


async def test_a_services_own_refusal_is_an_answer(service: ServiceProxy) -> None:
    answer = await service.get(DIGEST_PATH, "wrong")

    assert answer == Answer(401, b'{"error": {"type": "Unauthorized"}}')
    assert not answer.is_success


async def test_a_service_that_is_not_there_is_not_found(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound, match='services "nowhere'):
        await ServiceProxy(client, namespace, "nowhere", 8081).get("/healthz", "made-up")


async def test_a_service_without_a_ready_pod_is_unavailable(client: Client, namespace: str) -> None:
    ports = [{"port": 8081, "protocol": "TCP"}]
    selector = {"app": "nobody"}
    await client.create(
        SERVICES,
        namespace,
        {"metadata": {"name": "empty"}, "spec": {"ports": ports, "selector": selector}},
    )

    proxy = ServiceProxy(client, namespace, "empty", 8081)

    async def refused() -> Unavailable | None:
        try:
            await proxy.get("/healthz", "made-up")
        except NotFound:  # the API server looks for it in a cache
            return None
        except Unavailable as error:
            return error
        return None

    assert "no endpoints available" in (await until(refused)).reason_text
