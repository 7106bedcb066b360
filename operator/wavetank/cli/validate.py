"""``wavetank benchmarks validate``: the whole bundle, and its solutions played."""

from collections.abc import Sequence
from pathlib import Path

import click

from wavetank.cli import packing, render
from wavetank.cli.authoring import (
    AT_FAULT,
    GOOD,
    carry_out_here,
    counted,
    findings_document,
    folder_argument,
    json_option,
    plain_number,
    show_findings,
)
from wavetank.cli.check import document, show_inferred, summary
from wavetank.cli.looking import Looked, look
from wavetank.cli.playing import Played, Rollout, play
from wavetank.core.errors import Finding, Severity, SpecError
from wavetank.core.statistics import EPSILON

_PASS_MARK = 1.0
"""A Benchmark's own, ``spec.run.passThreshold``, is 1 unless it says otherwise."""
_LOG_LENGTH = 300


@click.command(epilog="Example:  wavetank benchmarks validate ./crm-bench")
@folder_argument
@json_option
def validate(folder: Path, as_json: bool) -> None:
    """Check the bundle in DIR and the worlds it is linked to, and play its solutions.

    Without a fault in the files, each task is played by the agent nop, which must not pass, and
    where there is a solution by the agent oracle, which must reach the reward 1.
    """
    carry_out_here(lambda: _validate(folder, as_json=as_json), as_json=as_json)


def _validate(folder: Path, *, as_json: bool) -> int:
    looked = look(folder)
    findings = [*looked.findings, *_unpackable(folder, looked)]
    played: list[Played] = []
    if not _faults(findings):
        with render.waiting(f"Playing {counted(len(looked.world.tasks), 'task')}"):
            played = play(looked.world, _rollouts(looked))
        findings += _of_rollouts(played)
    if as_json:
        render.print_json(_document(looked, findings, played))
    else:
        _show_played(looked, played)
        show_inferred(looked, folder)
        show_findings(findings)
        verdict = "is at fault" if _faults(findings) else "is good"
        click.echo(f"{folder} {verdict}: {summary(looked, findings)}")
    return AT_FAULT if _faults(findings) else GOOD


def _unpackable(folder: Path, looked: Looked) -> list[Finding]:
    """Return what else would keep the bundle from being pushed."""
    try:
        packing.pieces_of(folder, None)
    except SpecError as error:
        known = {each.path for each in looked.faults}
        return [each for each in error.findings if each.path not in known]
    return []


def _rollouts(looked: Looked) -> list[Rollout]:
    return [
        Rollout(task.id, agent)
        for task in looked.world.tasks
        for agent in ("oracle", "nop")
        if agent == "nop" or task.id in looked.world.solutions
    ]


def _of_rollouts(played: Sequence[Played]) -> list[Finding]:
    """Return what the rollouts say against the bundle."""
    findings = []
    for each in played:
        task, reward = each.rollout.task, each.grades.reward
        if each.rollout.agent == "nop":
            if reward is not None and reward >= _PASS_MARK - EPSILON:
                words = f"the agent nop, which does nothing, passes {task!r} with {reward:g}."
                findings.append(Finding(Severity.FAULT, "gateway-env.toml: tasks", words))
        elif reward is None or reward < 1 - EPSILON:
            words = f"the solution does not reach the reward 1: {_why(each)}."
            findings.append(Finding(Severity.FAULT, f"solutions/{task}.json", words))
    return findings


def _why(played: Played) -> str:
    """Return which verifiers say less than 1, and what the agent met."""
    parts = [
        f"{score.name} is null ({score.cause}: {score.message})"
        if score.cause is not None
        else f"{score.name} is {score.value:g}"
        for score in played.grades.scores
        if score.cause is not None or (score.value or 0) < 1 - EPSILON
    ]
    last = played.log.strip().rpartition("\n")[2]
    if last and "calls made" not in last:
        parts.append(last[:_LOG_LENGTH].rstrip("."))
    return "; ".join(parts)


def _show_played(looked: Looked, played: Sequence[Played]) -> None:
    if not played:
        return
    rewards = {(each.rollout.task, each.rollout.agent): each.grades.reward for each in played}
    made = render.table("task", "oracle", "nop", numbers=("oracle", "nop"))
    for task in looked.world.tasks:
        made.add_row(
            task.id,
            *(render.number(rewards.get((task.id, agent))) for agent in ("oracle", "nop")),
        )
    render.show(made)


def _document(
    looked: Looked, findings: Sequence[Finding], played: Sequence[Played]
) -> dict[str, object]:
    return {
        **document(looked),
        "ok": not _faults(findings),
        "findings": findings_document(findings),
        "rollouts": [
            {
                "task": each.rollout.task,
                "agent": each.rollout.agent,
                "reward": plain_number(each.grades.reward),
                "rewards": {score.name: plain_number(score.value) for score in each.grades.scores},
            }
            for each in played
        ],
    }


def _faults(findings: Sequence[Finding]) -> list[Finding]:
    return [each for each in findings if each.severity is Severity.FAULT]
