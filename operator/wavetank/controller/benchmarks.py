"""The cycle of a Benchmark: lay its tasks over its world, have them checked, say what was found."""

from wavetank.api.benchmark import Benchmark, BenchmarkStatus, VerifierEntry
from wavetank.api.conditions import Says, merged
from wavetank.api.fields import Digests, clip, decimal_text
from wavetank.api.kinds import read
from wavetank.api.moments import rfc3339
from wavetank.api.wire import BundleSet, CheckKind, CheckSpec
from wavetank.api.world import World
from wavetank.controller.checks import (
    Checked,
    Checker,
    NotChecked,
    Request,
    findings_of,
    has_faults,
    result_findings,
    summary,
)
from wavetank.controller.logs import get_logger
from wavetank.controller.queue import Key
from wavetank.controller.reporting import refs_digest
from wavetank.controller.shell import Shell
from wavetank.controller.sources import joined, overlay_files, packed, put_bundle
from wavetank.controller.statuses import write_status
from wavetank.controller.storage import Storage
from wavetank.controller.worlds import WAIT_SECONDS, linked_refs, stored_bundle
from wavetank.core.errors import SpecError
from wavetank.kube.objects import BENCHMARKS, WORLDS, Manifest
from wavetank.manifests.objects import CheckOwner

_log = get_logger(__name__)

RELOOK_SECONDS = 30.0
"""Between looks at the World of a Benchmark that is Ready: an edit of it means a new check."""


class BenchmarkReconciler:
    """Looks at Benchmarks; one instance per operator."""

    def __init__(self, shell: Shell, storage: Storage, checker: Checker) -> None:
        self._shell = shell
        self._storage = storage
        self._checker = checker

    async def __call__(self, key: Key) -> float | None:
        """Look at one Benchmark; return in how many seconds to look again at the latest."""
        raw = await self._shell.client.find(BENCHMARKS, key.namespace, key.name)
        if raw is None or raw["metadata"].get("deletionTimestamp"):
            return None
        try:
            benchmark = read(Benchmark, raw)
        except SpecError as error:
            _log.warning("benchmark cannot be read", benchmark=str(key), problem=error)
            return None
        world = await self._world(benchmark)
        if isinstance(world, NotChecked):
            return await self._say_waiting(benchmark, world)
        bundles = await self._bundles(benchmark, world)
        if isinstance(bundles, NotChecked):
            return await self._say_waiting(benchmark, bundles)
        return await self._check(raw, benchmark, world, bundles)

    async def _world(self, benchmark: Benchmark) -> World | NotChecked:
        name, namespace = benchmark.spec.world.world_ref.name, benchmark.metadata.namespace
        raw = await self._shell.client.find(WORLDS, namespace, name)
        if raw is None:
            words = f"There is no World {name} in this namespace yet."
            return NotChecked("WorldNotFound", words, WAIT_SECONDS)
        try:
            return read(World, raw)
        except SpecError as error:
            return NotChecked("WorldNotReady", f"World {name}: {error}", RELOOK_SECONDS)

    async def _bundles(self, benchmark: Benchmark, world: World) -> BundleSet | NotChecked:
        """Return the world's bundles, its links', and the Benchmark's own on top."""
        bundle = stored_bundle(world)
        linked = await linked_refs(self._shell.client, world)
        if bundle is None or world.status.checked is None or not isinstance(linked, BundleSet):
            ready = next((c.message for c in world.status.conditions if c.type == "Ready"), "")
            words = f"World {world.metadata.name} is not checked yet. {ready}".strip()
            return NotChecked("WorldNotReady", words, WAIT_SECONDS)
        sets = [bundle.refs()]
        files = overlay_files(benchmark.spec.world)
        if files:
            sets.append(packed(files).refs())
        return joined(*sets, linked)

    async def _check(
        self, raw: Manifest, benchmark: Benchmark, world: World, bundles: BundleSet
    ) -> float | None:
        meta, status = benchmark.metadata, benchmark.status
        current = status.observed_generation == meta.generation
        if current and status.checked == bundles.digest():
            await self._checker.forget(meta.namespace, meta.uid)
            return RELOOK_SECONDS
        await put_bundle(self._storage.client, packed(overlay_files(benchmark.spec.world)))
        request = Request(
            owner=CheckOwner(CheckKind.BENCHMARK, meta.name, meta.namespace, meta.uid),
            spec=CheckSpec(
                kind=CheckKind.BENCHMARK,
                uid=meta.uid,
                generation=meta.generation,
                bundles=bundles,
                aliases=[link.alias for link in world.spec.dependencies],
                pass_threshold=float(benchmark.spec.scoring.pass_threshold),
                store=self._storage.base_url,
            ),
            resources=world.spec.resources,
            runtime_class_name=world.spec.runtime_class_name,
        )
        outcome = await self._checker.check(request)
        if isinstance(outcome, NotChecked):
            return await self._say_waiting(benchmark, outcome)
        await self._say_checked(raw, benchmark, bundles, outcome)
        return RELOOK_SECONDS

    async def _say_checked(
        self, raw: Manifest, benchmark: Benchmark, bundles: BundleSet, outcome: Checked
    ) -> None:
        result = outcome.result
        findings = result_findings(result)
        if has_faults(findings):
            says = Says("Ready", False, "FaultsFound", summary(findings))
        else:
            words = f"{len(result.tasks)} tasks were checked and can be run."
            says = Says("Ready", True, "Checked", words)
        kept, omitted = findings_of(findings)
        changes = {
            "digests": Digests(
                agent=refs_digest(bundles.agent),
                grader=refs_digest(bundles.grader),
                solutions=refs_digest(bundles.solutions),
            ),
            "check_result": outcome.digest,
            "checked": bundles.digest(),
            "tasks": len(result.tasks),
            "initial_mean": decimal_text(result.initial_mean),
            "verifiers": tuple(
                VerifierEntry(
                    name=clip(verifier.name, 200),
                    initial_score=decimal_text(verifier.initial_score),
                    cause=verifier.cause,
                )
                for verifier in result.verifiers[:200]
            ),
            "findings": kept,
            "findings_omitted": omitted,
        }
        await self._write(benchmark, self._status(benchmark, says).model_copy(update=changes))
        if has_faults(findings):
            await self._shell.events.post(raw, "FaultsFound", summary(findings), warning=True)

    async def _say_waiting(self, benchmark: Benchmark, why: NotChecked) -> float | None:
        ready = False if why.again_after is None else None
        says = Says("Ready", ready, why.reason, why.message)
        await self._write(benchmark, self._status(benchmark, says))
        return why.again_after

    def _status(self, benchmark: Benchmark, says: Says) -> BenchmarkStatus:
        generation = benchmark.metadata.generation
        now = rfc3339(self._shell.clock().timestamp())
        return BenchmarkStatus(
            conditions=merged(benchmark.status.conditions, [says], generation, now),
            observed_generation=generation,
            kind="world",
        )

    async def _write(self, benchmark: Benchmark, status: BenchmarkStatus) -> None:
        if status == benchmark.status:
            return
        meta = benchmark.metadata
        if not await write_status(self._shell.client, BENCHMARKS, meta, status):
            # Changed since it was read: its own event brings the next look, or this does.
            self._shell.enqueue(Key("Benchmark", meta.namespace, meta.name), 0.5)
