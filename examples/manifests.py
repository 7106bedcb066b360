"""Write an example's Kubernetes manifests from its bundles: python examples/manifests.py 01-crm

A bundle is a folder with a gateway-env.toml; its World is named as that file says, its ConfigMap as
the folder. Three files come out:

  worlds.yaml         the Worlds, their files in ConfigMaps
  kustomization.yaml  makes those ConfigMaps: `kubectl apply -k`
  all-in-one.yaml     Worlds with their files inline, the Benchmark and Runs: `kubectl apply -f`
"""

import sys
import tomllib
from pathlib import Path

import yaml

API_VERSION = "wavetank.dev/v1alpha1"
RUNS = ("run-oracle.yaml", "run-nop.yaml")
NOTE = "# Written by examples/manifests.py from the bundles beside this file: change those.\n"


class Text(str):
    """Text that YAML shows line by line."""


yaml.SafeDumper.add_representer(
    Text, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def bundles(example: Path) -> list[Path]:
    """The example's bundles, those that others link to first."""
    found = [path.parent for path in sorted(example.glob("*/gateway-env.toml"))]
    return sorted(found, key=lambda bundle: len(links(bundle)))


def config(bundle: Path) -> dict:
    return tomllib.loads((bundle / "gateway-env.toml").read_text())


def links(bundle: Path) -> dict[str, str]:
    """The Worlds that a bundle links to, by alias."""
    return {
        alias: config(bundle / link["world"])["world"]["name"]
        for alias, link in config(bundle).get("dependencies", {}).items()
    }


def files(bundle: Path) -> list[str]:
    every = (path for path in bundle.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return sorted(str(path.relative_to(bundle)) for path in every)


def key(path: str) -> str:
    """The ConfigMap's key for a file: keys hold no slash."""
    return path.replace("/", ".")


def world(bundle: Path, source: dict) -> dict:
    spec = {"source": source}
    if links(bundle):
        spec["dependencies"] = [
            {"alias": alias, "worldRef": {"name": name}} for alias, name in links(bundle).items()
        ]
    name = config(bundle)["world"]["name"]
    return {"apiVersion": API_VERSION, "kind": "World", "metadata": {"name": name}, "spec": spec}


def inline(bundle: Path) -> dict:
    contents = ((path, Text((bundle / path).read_text())) for path in files(bundle))
    return {"inline": [{"path": path, "content": content} for path, content in contents]}


def in_config_map(bundle: Path) -> dict:
    items = [{"key": key(path), "path": path} for path in files(bundle)]
    return {"configMap": {"name": bundle.name, "items": items}}


def kustomization(example: Path) -> dict:
    return {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["worlds.yaml", "benchmark.yaml"],
        "generatorOptions": {"disableNameSuffixHash": True},
        "configMapGenerator": [
            {
                "name": bundle.name,
                "files": [f"{key(path)}={bundle.name}/{path}" for path in files(bundle)],
            }
            for bundle in bundles(example)
        ],
    }


def dump(*documents: dict) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, width=1000, allow_unicode=True)


def manifests(example: Path) -> dict[str, str]:
    """The text of each file by its name."""
    found = bundles(example)
    by_hand = [(example / name).read_text() for name in ("benchmark.yaml", *RUNS)]
    return {
        "worlds.yaml": NOTE + dump(*(world(bundle, in_config_map(bundle)) for bundle in found)),
        "kustomization.yaml": NOTE + dump(kustomization(example)),
        "all-in-one.yaml": NOTE
        + "---\n".join([dump(*(world(bundle, inline(bundle)) for bundle in found)), *by_hand]),
    }


def main(names: list[str]) -> None:
    for name in names:
        example = Path(__file__).parent / name
        for file, text in manifests(example).items():
            (example / file).write_text(text)
            print(f"{example.name}/{file}: {len(text.encode())} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
