"""From a session's seal to its reward: the world's own snapshots, graded by a real Job."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from wavetank.api.wire import (
    BundleSet,
    GradeMember,
    GradeRecord,
    Score,
    SessionEnd,
    SessionSpec,
    WorldMessage,
)
from wavetank.testing.bundles import CONFIG, DESK, OF_EACH_KIND, write_bundle, write_linked
from wavetank.testing.grading import Scene
from wavetank.testing.store import running_store
from wavetank.worlds.keeper import Ended, Report
from wavetank.worlds.opening import open_folders
from wavetank.worlds.sealing import MessageFile, StoreSealer
from wavetank.worlds.session import Session

Call = tuple[str, dict[str, str]]

CLOSE: Call = ("update_ticket", {"id": "T-7", "status": "closed", "reason": "duplicate"})
POST: Call = ("slack__post_message", {"channel": "#security", "text": "locked"})
REFUSED: Call = ("update_ticket", {"id": "T-7", "status": "closd"})


async def sealed(scene: Scene, bundles: BundleSet, calls: list[Call]) -> WorldMessage:
    """Act in a session as an agent would, seal it into the store, and return the message."""
    spec = SessionSpec(
        run=scene.run,
        ordinal=0,
        attempt=1,
        task="close_ticket",
        rollout=0,
        seed=0,
        deadline_seconds=60,
        bundles=bundles.agent,
        store=scene.store.url,
    )
    folder = scene.folder / "session"
    folder.mkdir()
    opening = open_folders(scene.main, scene.linked, spec.task)
    session = Session(opening, folder, lambda: datetime(2026, 1, 1, tzinfo=UTC))
    session.start()
    for name, arguments in calls:
        await session.call(name, arguments)
    await session.stop()
    message = MessageFile(folder / "message", folder / "copy")
    async with scene.store.client() as client:
        sealer = StoreSealer(spec, client, message, folder)
        return await sealer.seal(
            session, Ended(SessionEnd.CLOSED, Report("completed", "It is closed."))
        )


@pytest.mark.parametrize(
    ("calls", "scores"),
    [
        ([], (0.0, 0.0)),
        ([REFUSED], (0.0, 0.0)),
        ([CLOSE], (1.0, 0.0)),
        ([CLOSE, POST], (1.0, 1.0)),
    ],
    ids=["untouched", "refused_call", "half", "whole"],
)
async def test_what_an_agent_did_is_what_is_graded(
    tmp_path: Path, calls: list[Call], scores: tuple[float, float]
) -> None:
    with running_store(tmp_path / "store") as store:
        scene = Scene(store, tmp_path, write_linked(tmp_path), {"slack": tmp_path / "slack"})
        found = await graded(scene, calls)

    assert [(each.name, each.value) for each in found.scores] == [
        ("ticket_closed", scores[0]),
        ("slack/message_posted", scores[1]),
    ]
    assert found.reward == sum(scores) / 2


async def graded(scene: Scene, calls: list[Call]) -> GradeRecord:
    """Seal a session with these calls and return its record, given by a Job."""
    seal = (await sealed(scene, await scene.bundles(), calls)).seal
    assert seal is not None
    member = GradeMember(
        ordinal=0, attempt=1, task=seal.task, seal=seal.digest(), snapshot=seal.snapshot
    )
    job = await scene.job(member)

    job.run()

    [record] = job.report.records or []
    assert (record.ordinal, record.attempt, record.task) == (0, 1, "close_ticket")
    assert (record.seal, record.grader) == (seal.digest(), job.spec.bundles.digest())
    return record


@pytest.mark.parametrize(
    ("calls", "scores"),
    [
        ([], (0.0, 0.5, 0.0)),
        ([REFUSED], (0.0, 0.5, 0.0)),
        ([CLOSE], (1.0, 1.0, 1.0)),
        ([REFUSED, CLOSE], (1.0, 1.0, 0.0)),
    ],
    ids=["untouched", "refused_call", "solved", "solved_with_a_refused_call"],
)
async def test_a_verifier_of_each_kind_grades_the_same_session(
    tmp_path: Path, calls: list[Call], scores: tuple[float, ...]
) -> None:
    names = ("ticket_closed", "ticket_recorded", "one_call")
    config = CONFIG.replace('["ticket_closed"]', json.dumps(names))
    files = {**DESK, **OF_EACH_KIND, "gateway-env.toml": config}
    with running_store(tmp_path / "store") as store:
        scene = Scene(store, tmp_path, write_bundle(tmp_path / "crm", files))

        found = await graded(scene, calls)

    expected = [Score(name=name, value=value) for name, value in zip(names, scores, strict=True)]
    assert found.scores == expected
    assert found.reward == pytest.approx(sum(scores) / 3)
