"""What a check Job finds out about a World or Benchmark, all faults at once.

It runs where grade runs: people's handlers and verifiers are executed here, in children with
limits.
"""

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from wavetank.api.wire import (
    CheckKind,
    CheckResult,
    CheckSpec,
    EntityInfo,
    Score,
    TaskInfo,
    VerifierInfo,
    WireFinding,
)
from wavetank.bundles.world import Half, ReadWorld, Task, VerifierKey, VerifierKind, read
from wavetank.core.causes import Cause
from wavetank.core.errors import Finding, Severity
from wavetank.core.reward import task_reward
from wavetank.core.statistics import EPSILON, mean
from wavetank.worlds import database
from wavetank.worlds.grading import members
from wavetank.worlds.grading.handlers import list_tools
from wavetank.worlds.grading.sql import SESSION_TABLE, SessionFacts, printable
from wavetank.worlds.grading.states import states_of

_CONFIG = "gateway-env.toml"
_OVERLAY = "benchmark.json"
_MOST_FINDINGS = 500
_PATH, _MESSAGE = 300, 1000
"""Lengths that ``WireFinding`` can carry."""

_ANY_TASK = ""
"""The session's task for verifiers that do not ask for it."""

_NOT_OF_THE_STATE = re.compile(
    r"(linked/[^/]+/)?"
    r"(verifiers/|solutions|scripts|tools/|connector\.toml|benchmark\.json"
    r"|gateway-env\.toml: (tasks|run|dependencies|world))"
)
"""Paths of findings in spite of which the initial state is whole."""

Scores = Mapping[tuple[VerifierKey, str], Score]
"""The initial score of a verifier in a session of a task."""


def check(
    spec: CheckSpec,
    main: Path,
    linked: Mapping[str, Path],
    on_step: Callable[[], None] = lambda: None,
) -> CheckResult:
    """Read the bundles, import the handlers, run every verifier on the untouched state.

    Args:
        spec: What to check.
        main: Folder of the benchmark's own world.
        linked: Folders of the linked worlds by alias.
        on_step: Called after each verifier: the work goes on.

    Raises:
        MemberLostError: If a child was killed from outside: nothing is known.
    """
    halves = {Half.AGENT, Half.GRADER} | ({Half.SOLUTIONS} if spec.bundles.solutions else set())
    world = read(main, linked, halves)
    tools, of_handlers = list_tools(world)
    on_step()
    scores, of_state = _initial_scores(world, on_step)
    tasks = [_task_info(world, task, scores) for task in world.tasks]
    findings = [
        *_links(spec, world),
        *of_handlers,
        *of_state,
        *_verifiers(world, scores),
        *_tasks(spec, world, tasks),
    ]
    rewards = [task.initial_reward for task in tasks if task.initial_reward is not None]
    return CheckResult(
        kind=spec.kind,
        bundles=spec.bundles,
        findings=_wire(findings),
        entities=[
            EntityInfo(name=each.name, rows=len(world.main.rows.get(each.name, ())))
            for each in world.main.entities
        ],
        tools=[
            name for name, alias in tools.items() if spec.kind is CheckKind.BENCHMARK or not alias
        ],
        tasks=tasks,
        verifiers=[_verifier_info(key, scores) for key in _all_keys(world)],
        initial_mean=mean(rewards) if len(rewards) == len(tasks) else None,
    )


def _all_keys(world: ReadWorld) -> list[VerifierKey]:
    return [VerifierKey(each.alias, name) for each in world.worlds for name in each.verifiers]


def _initial_scores(
    world: ReadWorld, on_step: Callable[[], None]
) -> tuple[Scores, Sequence[Finding]]:
    """Return each verifier's score on the untouched state; none when there is no whole state."""
    if any(not _NOT_OF_THE_STATE.match(each.path) for each in world.faults):
        return {}, ()
    scores: dict[tuple[VerifierKey, str], Score] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        try:
            with closing(database.create(world.worlds)) as databases:
                databases.dump(folder)
        except sqlite3.Error as error:
            words = f"the initial state cannot be made of it: {error}"
            return {}, [Finding(Severity.FAULT, "data/initial.json", words)]
        for task_id, keys in _by_session(world).items():
            states = states_of(world, folder, SessionFacts(task_id, None, 0, "closed"))
            found = members.score_all(world, keys, states, on_answer=on_step)
            scores |= {(key, task_id): score for key, score in zip(keys, found, strict=True)}
    return scores, ()


def _by_session(world: ReadWorld) -> Mapping[str, list[VerifierKey]]:
    """Return which verifiers to run in a session of which task.

    The untouched state is the same in all of them, so a verifier runs once; only one that asks
    for the session runs for each of its tasks.
    """
    per_task = {key for key in _all_keys(world) if _asks_for_the_session(world, key)}
    found = {_ANY_TASK: [key for key in _all_keys(world) if key not in per_task]}
    for task in world.tasks:
        found[task.id] = [key for key in dict.fromkeys(task.graders) if key in per_task]
    unused = per_task - {key for keys in found.values() for key in keys}
    found[_ANY_TASK] += sorted(unused)
    return {task_id: keys for task_id, keys in found.items() if keys}


def _asks_for_the_session(world: ReadWorld, key: VerifierKey) -> bool:
    verifier = world.verifier(key)
    if verifier is None or verifier.kind is VerifierKind.ASSERTIONS:
        return False
    if verifier.kind is VerifierKind.PYTHON:
        return True  # it is given the task, whether it looks or not
    return SESSION_TABLE in verifier.path.read_text(encoding="utf-8", errors="replace")


def _score_of(scores: Scores, key: VerifierKey, task_id: str) -> Score | None:
    return scores.get((key, task_id)) or scores.get((key, _ANY_TASK))


def _verifier_info(key: VerifierKey, scores: Scores) -> VerifierInfo:
    """Return a verifier's initial score: in its first task where it depends on that."""
    score = next((score for (each, _), score in scores.items() if each == key), None)
    if score is None:
        return VerifierInfo(name=str(key), initial_score=None)
    return VerifierInfo(name=str(key), initial_score=score.value, cause=score.cause)


def _task_info(world: ReadWorld, task: Task, scores: Scores) -> TaskInfo:
    found = [_score_of(scores, key, task.id) for key in task.graders]
    known = [score for score in found if score is not None]
    reward = None
    if known and len(known) == len(found):
        reward, _ = task_reward([(score.value, score.cause) for score in known])
    return TaskInfo(
        id=task.id,
        verifiers=[str(key) for key in task.graders],
        category=task.category,
        difficulty=task.difficulty,
        tags=list(task.tags),
        timeout_seconds=task.timeout_seconds,
        max_steps=task.max_steps,
        initial_reward=reward,
        has_solution=task.id in world.solutions,
        scripts=[name for name, scripts in world.scripts.items() if task.id in scripts],
    )


def _links(spec: CheckSpec, world: ReadWorld) -> Iterator[Finding]:
    """Yield what reading found, and links that the object does not declare."""
    undeclared = {
        f"{_CONFIG}: dependencies.{alias}": (
            f"the bundle links {alias!r}, which spec.dependencies does not declare. "
            f"Declared: {', '.join(sorted(spec.aliases)) or 'none'}."
        )
        for alias in world.main.dependencies
        if alias not in spec.aliases
    }
    # Reading says of the same links that they are not there: one finding of each is enough.
    yield from (each for each in world.findings if each.path not in undeclared)
    for path, message in undeclared.items():
        yield Finding(Severity.FAULT, path, message)


def _verifiers(world: ReadWorld, scores: Scores) -> Iterator[Finding]:
    told = {each.path.partition(": ")[0] for each in world.faults}
    for (key, task_id), score in scores.items():
        verifier = world.verifier(key)
        path = f"linked/{key.alias}/" if key.alias else ""
        path += f"verifiers/{verifier.path.name}" if verifier else "verifiers"
        if path in told:
            continue  # one finding of each is enough
        where = f" in a session of {task_id!r}" if task_id else ""
        if score.cause is Cause.REWARD_MISSING:
            words = f"RewardMissing on the untouched state{where}: {score.message}."
            yield Finding(Severity.WARNING, path, words)
        elif score.cause is not None:
            words = f"{score.cause} on the untouched state{where}: {score.message}"
            yield Finding(Severity.FAULT, path, words)
        elif score.value == 1.0:
            words = f"scores 1.0 on the untouched state{where}: it grades nothing, or guards."
            yield Finding(Severity.WARNING, path, words)


def _tasks(spec: CheckSpec, world: ReadWorld, tasks: Sequence[TaskInfo]) -> Iterator[Finding]:
    """Yield what is wrong with tasks; a World needs none, and has no pass mark."""
    if spec.kind is not CheckKind.BENCHMARK:
        return
    overlaid = (world.main.root / _OVERLAY).exists()
    path = f"{_OVERLAY if overlaid else _CONFIG}: tasks"
    if not tasks and not world.faults:
        words = "there is no task. Add one, with a prompt and at least one verifier."
        yield Finding(Severity.FAULT, path, words)
    for task in tasks:
        reward = task.initial_reward
        if reward is not None and reward >= spec.pass_threshold - EPSILON:
            words = (
                f"TrivialTask: {task.id!r} has the reward {reward:g} before the agent acts, and "
                f"{spec.pass_threshold:g} passes. Add a verifier that the untouched state fails."
            )
            yield Finding(Severity.FAULT, path, words)


def _wire(findings: Sequence[Finding]) -> list[WireFinding]:
    """Return the findings, faults first, as many as anyone reads."""
    ordered = sorted(findings, key=lambda each: each.severity is not Severity.FAULT)
    rest = len(ordered) - _MOST_FINDINGS
    if rest > 0:
        left_out = Finding(ordered[_MOST_FINDINGS].severity, "bundle", f"and {rest} findings more.")
        ordered = [*ordered[:_MOST_FINDINGS], left_out]
    return [
        WireFinding(
            severity=each.severity,
            path=printable(each.path, _PATH),
            message=printable(each.message, _MESSAGE),
        )
        for each in ordered
    ]
