"""Asks the verifiers of a benchmark about the end state of one session, in child processes."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile

from wavetank.api.wire import Score
from wavetank.bundles.world import Entity, ReadWorld, Verifier, VerifierKey, VerifierKind
from wavetank.worlds.grading import assertions, python
from wavetank.worlds.grading.child import Child, Ending, How, Limits, Send
from wavetank.worlds.grading.sql import (
    BUSY_FACTOR,
    SECONDS_PER_VERIFIER,
    EndState,
    StateError,
    failed,
    opened,
    timed_out,
)
from wavetank.worlds.grading.states import States


class MemberLostError(Exception):
    """A child was killed from outside: nothing is known about the member, grade it again."""


@dataclass(frozen=True)
class Question:
    """One verifier of a task."""

    name: str
    """Its key in ``rewards``."""
    alias: str
    """The linked world whose state it asks; empty for the own world."""
    verifier: Verifier


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
            questions.append(Question(str(key), key.alias, verifier))
    scores |= {each.name: each for each in ask(questions, states, seconds, on_answer)}
    return [scores[str(key)] for key in keys]


def ask(
    questions: Sequence[Question],
    states: States,
    seconds: float,
    on_answer: Callable[[], None] = lambda: None,
) -> list[Score]:
    """Return each question's score, in order; the questions run in children with limits.

    A question that kills its child costs itself only: the rest is asked in a further one. Python
    has a child of its own.

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
        together = list(takewhile(lambda each: each.verifier.kind is not VerifierKind.PYTHON, rest))
        if together:
            found = _ask_together(together, states, seconds, on_answer)
        else:
            found = [_ask_python(rest[0], states, seconds)]
            on_answer()
        scores += found
    return scores


def _ask_together(
    questions: Sequence[Question], states: States, seconds: float, on_answer: Callable[[], None]
) -> list[Score]:
    """Return the scores of the first questions, one at least, out of one child."""
    scores: list[Score] = []
    child = Child(partial(_answer, questions, states, seconds), _limits(seconds))
    for line in child:
        if line:
            scores.append(Score.model_validate_json(line))
            on_answer()
    if len(scores) < len(questions):
        scores.append(_unanswered(questions[len(scores)].name, child.ending, seconds))
        on_answer()
    return scores


def _ask_python(question: Question, states: States, seconds: float) -> Score:
    """Return the score of people's code: it has a child of its own, and one line to say it in."""
    work = partial(python.verify, question.verifier.path, question.alias, states, seconds)
    child = Child(work, replace(_limits(seconds), sqlite_heap_mib=python.SQLITE_HEAP_MIB))
    with closing(iter(child)) as lines:
        line = next(lines, None)
    if line is None:
        return _unanswered(question.name, child.ending, seconds)
    return python.score_of(question.name, line)


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
                    score = _score(question, state, states.entities[alias], seconds)
                    send(score.canonical())
        except StateError as error:
            for question in rest:
                send(failed(question.name, str(error)).canonical())


def _score(
    question: Question, state: EndState, entities: Sequence[Entity], seconds: float
) -> Score:
    verifier = question.verifier
    if verifier.kind is VerifierKind.ASSERTIONS:
        return assertions.score(question.name, verifier.assertions, state, entities)
    statement = verifier.path.read_text(encoding="utf-8", errors="replace")
    return state.score(question.name, statement, seconds)


def _unanswered(name: str, ending: Ending | None, seconds: float) -> Score:
    """Return the score of the question that was being asked when its child ended."""
    if ending is None or ending.how is How.KILLED:
        raise MemberLostError
    if ending.how is How.SILENT:
        return timed_out(name, seconds)
    words = ending.words or "its process ended by itself"
    return failed(name, f"the verifier could not be run: {words}")
