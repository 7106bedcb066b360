"""Draw the pictures of these pages: python docs/images/draw.py [FOLDER].

The figures come from Wavetank's own code, so a picture cannot say what the code does not do.
"""

import random
import sys
from collections.abc import Callable
from pathlib import Path

from canvas import AMBER, BLUE, FAINT, GREEN, INK, PALE, RED, Canvas, Point

from wavetank.core import statistics
from wavetank.core.lifecycle import TRANSITIONS, Stage


def kinds() -> Canvas:
    """The three kinds, and what a Run makes."""
    c = Canvas(
        900, 330, "A Run names a Benchmark, which names a World; the Run makes Pods and Jobs"
    )
    c.box(
        (20, 20),
        (230, 104),
        ["World crm", "tables and seed data", "tools, verifiers", "Ready: checked by a Job"],
        BLUE,
    )
    c.box(
        (20, 160), (230, 70), ["World slack", "a world of its own,", "linked as slack__..."], BLUE
    )
    c.box(
        (345, 20),
        (205, 104),
        [
            "Benchmark crm",
            "tasks: a prompt and",
            "the verifiers that grade it",
            "Ready: checked by a Job",
        ],
        GREEN,
    )
    c.box(
        (655, 20),
        (225, 104),
        [
            "Run crm-oracle",
            "an agent, k = 3, parallelism",
            "status: rewards and their error",
            "Complete, whatever the score",
        ],
        AMBER,
    )
    c.arrow([(345, 70), (252, 70)], "worldRef")
    c.arrow([(655, 70), (552, 70)], "benchmarkRef")
    c.arrow([(135, 124), (135, 158)])
    c.text((145, 146), "dependencies", 11)
    c.box((330, 250), (150, 62), ["rollout Pods", "tasks x k of them"])
    c.box((530, 250), (150, 62), ["verifier Jobs", "up to 16 ends each"])
    c.box((730, 250), (150, 62), ["ledger", "one record a rollout"])
    c.arrow([(482, 281), (528, 281)])
    c.arrow([(682, 281), (728, 281)])
    c.arrow([(700, 124), (700, 190), (405, 190), (405, 248)], "makes, one Pod for each rollout")
    c.arrow([(820, 248), (820, 126)])
    c.text((828, 215), "status", 11)
    return c


def rollout() -> Canvas:
    """One rollout, from its Pod to its record."""
    c = Canvas(
        920, 420, "A rollout: agent and world in one Pod, a sealed end, a verifier Job, a record"
    )
    c.box((20, 20), (330, 250), ["rollout Pod"], FAINT)
    c.box(
        (40, 55),
        (290, 70),
        ["agent", "acts through tools only;", "knows no verifier, holds no token"],
        AMBER,
    )
    c.box(
        (40, 180),
        (290, 75),
        ["world", "serves the tables and tools of all", "linked worlds; seals the end"],
        BLUE,
    )
    c.arrow([(185, 125), (185, 178)])
    c.text((195, 150), "tools, then close", 11)
    c.text((195, 164), "HTTP or MCP, localhost", 11, colour=FAINT)
    c.box(
        (20, 320),
        (330, 80),
        ["store", "bundles by digest; snapshot and seal of", "each attempt, written once"],
        FAINT,
    )
    c.arrow([(120, 255), (120, 318)])
    c.text((130, 292), "snapshot, then seal", 11)
    c.box((450, 20), (430, 145), ["verifier Job, created after the seal"], FAINT)
    c.box(
        (470, 55),
        (180, 90),
        ["grade", "runs the verifiers on", "the sealed end state;", "holds no token"],
        GREEN,
    )
    c.box(
        (680, 55),
        (180, 90),
        ["judge", "fetches, checks every", "record, reports; runs", "no test, no agent"],
        BLUE,
    )
    c.arrow([(680, 85), (652, 85)])
    c.arrow([(650, 115), (678, 115)])
    c.arrow([(350, 370), (900, 370), (900, 100), (862, 100)])
    c.text((470, 364), "verifiers, end state", 11)
    c.box(
        (450, 205),
        (430, 62),
        ["operator", "takes rewards from the judge's termination message only"],
        AMBER,
    )
    c.arrow([(770, 145), (770, 203)])
    c.text((778, 186), "rewards", 11)
    c.arrow([(530, 267), (530, 298)])
    c.box((450, 300), (160, 40), ["ledger first,"], FAINT)
    c.box((640, 300), (240, 40), ["then status, then deletes"], FAINT)
    c.arrow([(610, 320), (638, 320)])
    return c


PLACES: dict[Stage, Point] = {
    Stage.PLANNED: (30, 90),
    Stage.STARTING: (175, 90),
    Stage.ACTING: (320, 90),
    Stage.ENDED: (465, 90),
    Stage.GRADING: (610, 90),
    Stage.RECORDED: (755, 90),
}


def stages() -> Canvas:
    """The stages of a rollout, from the operator's own table."""
    c = Canvas(900, 240, "planned, starting, acting, ended, grading, recorded; failures lead back")
    order = list(PLACES)
    for stage, (x, y) in PLACES.items():
        c.box((x, y), (110, 42), [stage.value], GREEN if stage is Stage.RECORDED else BLUE)
    depth = {True: 0, False: 0}
    for before, after in [(b, a) for b in order for a in order if a in TRANSITIONS[b]]:
        steps = order.index(after) - order.index(before)
        (x1, y), (x2, _) = PLACES[before], PLACES[after]
        if steps == 1:
            c.arrow([(x1 + 110, y + 21), (x2 - 2, y + 21)])
            continue
        forward = steps > 0
        depth[forward] += 1
        # Each on a level of its own: above what gives up, below what goes back.
        level = y - 12 * depth[forward] if forward else y + 42 + 20 * depth[forward]
        edge = y if forward else y + 42
        start, end = x1 + 50 + 8 * depth[forward], x2 + 30 + 10 * depth[forward]
        colour = FAINT if forward else RED
        c.arrow([(start, edge), (start, level), (end, level), (end, edge)], colour=colour)
    c.text(
        (320, 20),
        "no attempt or try is left: recorded as unscored, with its cause",
        12,
        colour=FAINT,
    )
    c.text(
        (30, 220),
        "red: an infrastructure failure costs an attempt, a failed grading a try; never a rollout",
        12,
        colour=RED,
    )
    return c


def bounds() -> Canvas:
    """One Run's mean with everything that says how far to trust it."""
    # Three tasks of k = 3 with means 3/4, 1/3 and 1; one rollout of the first is unscored.
    means = [3 / 4, 1 / 3, 1.0]
    m = sum(means) / 3
    error = statistics.standard_error(means) or 0.0
    low, high = statistics.interval95(means) or (0.0, 1.0)
    worst, best = (1.5 / 3 + 1 / 3 + 1) / 3, (2.5 / 3 + 1 / 3 + 1) / 3
    c = Canvas(900, 210, f"mean {m:.4f} with its interval, standard error and bounds")

    def x(value: float) -> float:
        return 185 + 670 * value

    for tick in range(11):
        c.line([(x(tick / 10), 30), (x(tick / 10), 165)], PALE, 1)
        c.text((x(tick / 10), 184), f"{tick / 10:.1f}", 11, colour=FAINT, anchor="middle")
    rows: list[tuple[str, float, float, str]] = [
        ("interval95", low, high, BLUE),
        ("mean ± standardError", m - error, m + error, GREEN),
        ("lowerBound..upperBound", worst, best, AMBER),
    ]
    for place, (name, start, end, colour) in enumerate(rows):
        y = 55 + 40 * place
        c.line([(x(start), y), (x(end), y)], colour, 6)
        c.dot((x(m), y), INK, 4.5)
        c.text((14, y + 4), name, 11)
        c.text((x(start) - 8, y + 4), f"{start:.4f}", 11, colour=colour, anchor="end")
        c.text((x(end) + 8, y + 4), f"{end:.4f}", 11, colour=colour)
    c.text((x(m), 22), f"mean {m:.4f}", 12, "bold", anchor="middle")
    return c


Draw = Callable[[random.Random], float]
POPULATIONS: list[tuple[str, Draw, float]] = [
    ("easy for the agent: task means around 0.9", lambda rng: rng.betavariate(9, 1), 0.9),
    ("mixed: task means anywhere in 0..1", lambda rng: rng.random(), 0.5),
]
SIZES = [3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 50]
RUNS = 2000


def share_covered(tasks: int, draw: Draw, true: float, rng: random.Random) -> tuple[float, float]:
    """Return how often the true mean lies in Wavetank's interval, and in mean ± 1.96 SE."""
    ours = naive = 0
    for _ in range(RUNS):
        chances = [draw(rng) for _ in range(tasks)]
        means = [sum(rng.random() < p for _ in range(3)) / 3 for p in chances]
        m = sum(means) / tasks
        error = statistics.standard_error(means) or 0.0
        low, high = statistics.interval95(means) or (0.0, 0.0)
        ours += low <= true <= high
        naive += abs(m - true) <= statistics.Z95 * error
    return ours / RUNS, naive / RUNS


def coverage() -> Canvas:
    """How often 95 % intervals hold the truth, by the number of tasks."""
    c = Canvas(
        900, 330, "Wilson at the effective number of tasks stays near 95 %; the naive one does not"
    )
    for panel, (name, draw, true) in enumerate(POPULATIONS):
        left = 60 + 435 * panel
        c.text((left, 26), name, 13, "bold")

        def at(place: int, share: float, left: int = left) -> Point:
            return left + 36 * place + 10, 270 - 400 * (share - 0.5)

        for tick in (0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
            y = at(0, tick)[1]
            c.line([(left, y), (left + 385, y)], PALE, 1)
            c.text((left - 8, y + 4), f"{tick:.0%}", 11, colour=FAINT, anchor="end")
        y = at(0, 0.95)[1]
        c.line([(left, y), (left + 385, y)], INK, 1, "5 4")
        rng = random.Random(7)  # noqa: S311 - a simulation
        shares = [share_covered(size, draw, true, rng) for size in SIZES]
        for which, colour in ((1, RED), (0, BLUE)):
            points = [at(place, pair[which]) for place, pair in enumerate(shares)]
            c.line([(round(px, 1), round(py, 1)) for px, py in points], colour, 2)
            for point in points:
                c.dot(point, colour)
        for place, size in enumerate(SIZES):
            c.text((at(place, 0.5)[0], 288), str(size), 11, colour=FAINT, anchor="middle")
    c.text((60, 315), "number of tasks, 3 rollouts each", 12, colour=FAINT)
    c.text((330, 315), "blue: interval95", 12, "bold", BLUE)
    c.text((480, 315), "red: mean ± 1.96 standardError", 12, "bold", RED)
    c.text((710, 315), "dashed: the 95 % promised", 12)
    return c


PICTURES: dict[str, Callable[[], Canvas]] = {
    "kinds.svg": kinds,
    "rollout.svg": rollout,
    "stages.svg": stages,
    "bounds.svg": bounds,
    "coverage.svg": coverage,
}


def main(folder: Path) -> None:
    """Write every picture into a folder."""
    for name, picture in PICTURES.items():
        (folder / name).write_text(picture().svg())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
