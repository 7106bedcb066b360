"""A Run's ledger in ConfigMaps: loaded once, refreshed before creates, added to by compare-and-swap.

Only operators write it, and every write names the version it was based on, so what is held here may
be old but never wrong: a write on an old version is refused and done again on the new one. Each key
has one home, so the first valid record of a rollout wins, whoever writes it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from wavetank.api.ledger import (
    LedgerDamaged,
    decode,
    encode,
    key_of,
    ledger_of,
)
from wavetank.core.actions import Entry
from wavetank.core.errors import ClusterError
from wavetank.core.identity import ledger_name, shard_of
from wavetank.core.observed import Ledger
from wavetank.kube.client import Client
from wavetank.kube.errors import AlreadyExists, Conflict, NotFound
from wavetank.kube.objects import CONFIGMAPS, Manifest, controller_of, version_of
from wavetank.manifests.objects import (
    LABEL_COMPONENT,
    LABEL_RUN_UID,
    Component,
    RunOwner,
    ledger_config_map,
)

GENERATION = 0
"""Grading again, and running again what has no score, will raise it."""

_TRIES = 5
"""Compare-and-swap rounds in one look; two operators at once need two."""


@dataclass
class _Shard:
    version: str
    entries: dict[str, Entry] = field(default_factory=dict)


class RunLedger:
    """The ledger of one generation of one Run."""

    def __init__(
        self, client: Client, run: RunOwner, generation: int, task_ids: Sequence[str]
    ) -> None:
        self.generation = generation
        self._client = client
        self._run = run
        self._task_ids = task_ids
        self._shards: dict[int, _Shard] = {}
        self._view: Ledger | None = None

    @property
    def shard_count(self) -> int:
        """How many ConfigMaps hold it."""
        return len(self._shards)

    def view(self) -> Ledger:
        """Return all entries, as last read or written."""
        if self._view is None:
            self._view = ledger_of(
                entry for shard in self._shards.values() for entry in shard.entries.values()
            )
        return self._view

    async def load(self, *, least_shards: int, least_records: int) -> None:
        """Read every shard.

        Args:
            least_shards: What the Run's status has said before; fewer now means damage.
            least_records: Likewise, of records.

        Raises:
            LedgerDamaged: If a shard is missing, foreign, or not as written.
        """
        listing = await self._client.list(
            CONFIGMAPS,
            self._run.namespace,
            label_selector=f"{LABEL_RUN_UID}={self._run.uid},{LABEL_COMPONENT}={Component.LEDGER}",
        )
        self._shards = {}
        for item in listing.items:
            if item["metadata"]["name"].startswith(self._name(0)[:-3]):
                self._take(item)
        self._view = None
        found = (self.shard_count, len(self.view().records))
        if found[0] < least_shards or found[1] < least_records:
            raise LedgerDamaged(
                f"the ledger of Run {self._run.name} has {found[0]} shards with {found[1]} records, "
                f"but had {least_shards} with {least_records}: a ConfigMap {self._run.name}-ledger-* "
                f"was deleted or changed. Restore it, or delete the Run and apply it again."
            )

    async def refresh(self, ordinals: Iterable[int]) -> None:
        """Read again the shards in which these ordinals live."""
        for shard in sorted({shard_of(ordinal) for ordinal in ordinals}):
            await self._read(shard)

    async def write(self, entries: Sequence[Entry], now: float) -> list[Entry]:
        """Add entries; those whose key is there already are left as they are.

        Returns:
            Those that this write added.

        Raises:
            ClusterError: If the API server did not take them; nothing is lost, ask again.
            LedgerDamaged: If a shard has gone or is foreign.
        """
        by_shard: dict[int, list[Entry]] = {}
        for entry in entries:
            by_shard.setdefault(shard_of(entry.key.ordinal), []).append(entry)
        added: list[Entry] = []
        for shard, members in sorted(by_shard.items()):
            added += await self._write_shard(shard, members, now)
        return added

    async def _write_shard(
        self, number: int, members: Sequence[Entry], now: float
    ) -> Sequence[Entry]:
        for _ in range(_TRIES):
            known = self._shards.get(number)
            missing = [e for e in members if known is None or key_of(e) not in known.entries]
            if not missing:
                return ()
            data = {key_of(entry): encode(entry, self._task_ids, now) for entry in missing}
            try:
                if known is None:
                    body = ledger_config_map(self._run, self.generation, number, data)
                    item = await self._client.create(CONFIGMAPS, self._run.namespace, body)
                else:
                    item = await self._client.merge_patch(
                        CONFIGMAPS,
                        self._run.namespace,
                        self._name(number),
                        {"data": data},
                        resource_version=known.version,
                    )
            except (AlreadyExists, Conflict, NotFound):
                await self._read(number)
                continue
            self._take(item)
            return missing
        raise ClusterError(
            f"ConfigMap {self._name(number)} is changed by others all the time, or its namespace is gone"
        )

    async def _read(self, number: int) -> None:
        item = await self._client.find(CONFIGMAPS, self._run.namespace, self._name(number))
        if item is not None:
            self._take(item)
        elif number in self._shards:
            raise self._damage(self._name(number), "was deleted")

    def _take(self, item: Manifest) -> None:
        """Hold a shard as the API server gave it."""
        name = item["metadata"]["name"]
        owner = controller_of(item)
        if owner is None or owner.uid != self._run.uid:
            raise LedgerDamaged(
                f"ConfigMap {name} is not this Run's: its owner is "
                f"{'nobody' if owner is None else f'{owner.kind} {owner.name}'}. "
                f"Delete or rename it."
            )
        digits = name.rpartition("-")[2]
        number = int(digits) if digits.isdecimal() else -1
        if name != self._name(number):
            raise self._damage(name, "has a name that no shard has")
        known = self._shards.get(number)
        old = known.entries if known is not None else {}
        data = item.get("data") or {}
        # Entries never change once written, so what was decoded before stays.
        entries = {key: old.get(key) or decode(name, key, text) for key, text in data.items()}
        if lost := sorted(set(old) - set(entries)):
            raise self._damage(name, f"lost {len(lost)} entries, {lost[0]} the first")
        strange = [key for key, entry in entries.items() if shard_of(entry.key.ordinal) != number]
        if strange:
            raise self._damage(name, f"holds {strange[0]}, which belongs into another shard")
        self._shards[number] = _Shard(version_of(item), entries)
        self._view = None

    def _damage(self, name: str, what: str) -> LedgerDamaged:
        return LedgerDamaged(
            f"ConfigMap {name} of Run {self._run.name} {what}. Restore it, or delete the Run and "
            f"apply it again."
        )

    def _name(self, number: int) -> str:
        return ledger_name(self._run.name, self.generation, number)
