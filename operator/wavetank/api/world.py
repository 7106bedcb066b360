"""The kind World: schema, seed data and tools that an agent acts on."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from wavetank.api.fields import (
    REMEDY,
    Alias,
    ClassName,
    Clipped,
    Conditions,
    Digests,
    DigestText,
    Findings,
    Model,
    ObjectMeta,
    ObjectName,
    ObjectRef,
    Resources,
    StatusModel,
    checked,
    named_by,
)

INLINE_BYTES = 200_000
"""All inline files together: `kubectl apply` keeps a copy in an annotation of at most 256 KiB."""

FilePath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=250,
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)*$",
        json_schema_extra={
            REMEDY: "must be a path inside the bundle, like tools/handlers.py: relative, no '..', "
            "no part that starts with '.' or '-', only letters, digits, '.', '_' and '-'"
        },
    ),
]


class InlineFile(Model):
    """A file of the bundle, written out in the object."""

    path: FilePath
    """path of the file inside the bundle, like schema/world.json."""
    content: Annotated[str, Field(max_length=INLINE_BYTES)]
    """content of the file as text."""


class KeyPath(Model):
    """Which key of a ConfigMap holds which file of the bundle."""

    key: Annotated[str, Field(min_length=1, max_length=253)]
    """key of the ConfigMap."""
    path: FilePath
    """path of the file inside the bundle."""


class ConfigMapSource(Model):
    """A bundle in a ConfigMap of the same namespace."""

    name: ObjectName
    """name of the ConfigMap."""
    items: Annotated[
        tuple[KeyPath, ...] | None,
        Field(max_length=200, json_schema_extra=named_by("path")),
    ] = None
    """items say which key holds which file. Without items the ConfigMap has the one key
    bundle.tar.zst in binaryData, as `wavetank benchmarks push` writes it."""


class BundleSource(Model):
    """A bundle in Wavetank's store."""

    digest: DigestText
    """digest of the bundle's manifest."""


class Source(Model):
    """Where a bundle comes from: exactly one of the three."""

    model_config = checked(
        (
            "[has(self.inline), has(self.configMap), has(self.bundle)]"
            ".filter(given, given).size() == 1",
            "must have exactly one of inline, configMap and bundle",
        ),
        (
            f"!has(self.inline) || "
            f"self.inline.map(file, size(bytes(file.content))).sum() <= {INLINE_BYTES}",
            f"inline may hold {INLINE_BYTES} bytes of content in all files together: "
            "use configMap, or bundle with `wavetank benchmarks push`",
        ),
    )

    inline: Annotated[
        tuple[InlineFile, ...] | None,
        Field(min_length=1, max_length=100, json_schema_extra=named_by("path")),
    ] = None
    """inline holds the whole tree of files; at most 200,000 bytes together."""
    config_map: ConfigMapSource | None = None
    """configMap names a ConfigMap that holds the files."""
    bundle: BundleSource | None = None
    """bundle names a bundle in the store by its digest."""

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if [self.inline, self.config_map, self.bundle].count(None) != 2:
            raise ValueError("must have exactly one of inline, configMap and bundle")
        return self


class Dependency(Model):
    """A world that is served together with this one."""

    alias: Alias
    """alias under which the world is linked: its tools are called <alias>__<tool>."""
    world_ref: ObjectRef
    """worldRef names the World in the same namespace."""


class WorldSpec(Model):
    """What a World is made of."""

    source: Source
    """source says where the world's files come from: exactly one of inline, configMap, bundle."""
    dependencies: Annotated[
        tuple[Dependency, ...], Field(max_length=16, json_schema_extra=named_by("alias"))
    ] = ()
    """dependencies are the worlds that are served together with this one."""
    resources: Resources | None = None
    """resources of the container that serves the world, and of the one that grades it."""
    runtime_class_name: ClassName | None = None
    """runtimeClassName of the Pods that serve, check and grade this world, like gvisor."""


class Entity(StatusModel):
    """A table of the world."""

    name: Annotated[str, Clipped(128)]
    """name of the entity, which is also its table's."""
    rows: int
    """rows of it in the seed data."""


class WorldCounts(StatusModel):
    """How much there is, for people who list worlds."""

    entities: int
    """entities is the number of tables."""
    rows: int
    """rows is the number of rows in the seed data of all entities."""
    tools: int
    """tools is the number of tools, those of linked worlds not counted."""


class Upload(StatusModel):
    """Where the bytes of a bundle are to be brought that the store does not have yet."""

    service: Annotated[str, Field(max_length=200)]
    """service is the store's, as <namespace>/<name>:<port>; it is reached by the API server's
    proxy."""
    path: Annotated[str, Field(max_length=200)]
    """path of the bundle in the store."""
    token: Annotated[str, Field(max_length=2000)]
    """token allows to create exactly this bundle, whose digest the store checks, and nothing
    else. It travels in the header X-Wavetank-Token."""
    expires_at: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """expiresAt is when another token will stand here; RFC 3339."""


class WorldStatus(StatusModel):
    """What the operator found out about a World."""

    conditions: Conditions = ()
    """conditions: Ready is True when the world's files were checked and no fault was found."""
    observed_generation: int | None = None
    """observedGeneration is the generation of the spec that this status tells of."""
    bundle: DigestText | None = None
    """bundle is the digest of the manifest of all the world's files."""
    digests: Digests | None = None
    """digests of the three parts of the bundle, split by who may fetch them."""
    checked: DigestText | None = None
    """checked is the digest of the set of bundles that was checked, linked worlds included."""
    upload: Upload | None = None
    """upload says where to bring a bundle that the store does not have; absent otherwise."""
    counts: WorldCounts | None = None
    """counts are the numbers of entities, seed rows and tools."""
    entities: Annotated[tuple[Entity, ...], Field(max_length=500)] = ()
    """entities are the world's tables and their seed rows."""
    tools: Annotated[tuple[Annotated[str, Clipped(128)], ...], Field(max_length=500)] = ()
    """tools are the names of the world's tools."""
    findings: Findings = ()
    """findings are what is wrong in the world's files, faults first; at most 100."""
    findings_omitted: int = 0
    """findingsOmitted is the number of further findings that did not fit."""


class World(Model):
    """A World is the schema, the seed data and the tools that an agent acts on."""

    metadata: ObjectMeta
    spec: WorldSpec
    """spec is what the world is made of."""
    status: WorldStatus = WorldStatus()
    """status is what the operator found out; written by the operator only."""
