"""Asks the verifiers of a benchmark about the end state of one session, in child processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from wavetank.api.wire import Score
from wavetank.bundles.world import Entity, ReadWorld, VerifierKey
from wavetank.worlds.grading.child import Child, Ending, How, Limits, Send
from wavetank.worlds.grading.sql import (
    BUSY_FACTOR,
    SECONDS_PER_VERIFIER,
    SessionFacts,
    StateError,
    failed,
    opened,
    timed_out,
)


class MemberLostError(Exception):
    """A child was killed from outside: nothing is known about the member, grade it again."""


@dataclass(frozen=True)
class Question:
    """One verifier of a task."""

    name: str
    """Its key in ``rewards``."""
    alias: str
    """The linked world whose state it asks; empty for the own world."""
    statement: str


@dataclass(frozen=True)
class States:
    """The end states of a session: a file and the declared entities for each world."""

    files: Mapping[str, Path]
    """By alias; the own world's under the empty one."""
    entities: Mapping[str, Sequence[Entity]]
    session: SessionFacts


def states_of(world: ReadWorld, folder: Path, session: SessionFacts) -> States:
    """Return the end states that ``Databases.dump`` has written into a folder.

    Args:
        world: The bundles that the session was of.
        folder: Holds ``main.sqlite`` and ``linked/<alias>.sqlite``.
        session: What ``_session`` will say.
    """
    return States(
        files={
            each.alias: folder / (f"linked/{each.alias}.sqlite" if each.alias else "main.sqlite")
            for each in world.worlds
        },
        entities={each.alias: each.entities for each in world.worlds},
        session=session,
    )


def score_all(
    world: ReadWorld,
    keys: Sequence[VerifierKey],
    states: States,
    seconds: float = SECONDS_PER_VERIFIER,
    on_answer: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Return the scores of these verifiers, in order; see ``ask``.

    Raises:
        MemberLostError: If a child was killed from outside.
    """
    scores: dict[str, Score] = {}
    questions = []
    for key in keys:
        verifier = world.verifier(key)
        if verifier is None:
            scores[str(key)] = failed(str(key), "the bundle has no verifier of this name")
        else:
            statement = verifier.path.read_text(encoding="utf-8", errors="replace")
            questions.append(Question(str(key), key.alias, statement))
    scores |= {each.name: each for each in ask(questions, states, seconds, on_answer)}
    return [scores[str(key)] for key in keys]


def ask(
    questions: Sequence[Question],
    states: States,
    seconds: float,
    on_answer: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Return each question's score, in order; the questions run in a child with limits.

    A question that kills its child costs itself only: the rest is asked in a further one.

    Args:
        questions: What to ask.
        states: Whom to ask.
        seconds: How long one question may take, and how long copying one state may.
        on_answer: Called after each answer: the work goes on.

    Raises:
        MemberLostError: If a child was killed from outside.
    """
    scores: list[Score] = []
    while len(scores) < len(questions):
        rest = questions[len(scores) :]
        child = Child(partial(_answer, rest, states, seconds), _limits(seconds))
        for line in child:
            if line:
                scores.append(Score.model_validate_json(line))
                on_answer()
        if len(scores) < len(questions):
            scores.append(_unanswered(questions[len(scores)].name, child.ending, seconds))
            on_answer()
    return scores


def _limits(seconds: float) -> Limits:
    # The clock in the child ends a statement by itself. What it cannot end, one long step of the
    # engine, the parent ends a little later.
    return Limits(seconds=seconds * 1.05, wall_seconds=seconds * BUSY_FACTOR * 1.05 + 1)


def _answer(questions: Sequence[Question], states: States, seconds: float, send: Send) -> None:
    """Ask every question and send its score; an empty line means that a state was opened.

    Questions to one world stand together, and one state is open at a time: memory is limited.
    """
    for alias, asked in groupby(questions, key=lambda question: question.alias):
        rest = list(asked)
        try:
            with opened(
                states.files[alias], states.entities[alias], states.session, seconds
            ) as state:
                send(b"")
                for question in rest:
                    send(state.score(question.name, question.statement, seconds).canonical())
        except StateError as error:
            for question in rest:
                send(failed(question.name, str(error)).canonical())


def _unanswered(name: str, ending: Ending | None, seconds: float) -> Score:
    """Return the score of the question that was being asked when its child ended."""
    if ending is None or ending.how is How.KILLED:
        raise MemberLostError
    if ending.how is How.SILENT:
        return timed_out(name, seconds)
    return failed(name, f"the verifier could not be run: {ending.words}")
