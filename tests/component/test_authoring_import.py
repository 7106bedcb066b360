"""`benchmarks import`: which tasks of other benchmarks a world could hold, and why."""

import json
from pathlib import Path

from wavetank.testing import command
from wavetank.testing.bundles import write_bundle

TASK = {
    "task.toml": 'version = "1.0"\n[verifier]\ntimeout_sec = 120.0\n',
    "instruction.md": "Do it.",
    "environment/Dockerfile": "FROM ubuntu:24.04\nWORKDIR /app\n",
    "tests/test.sh": "#!/bin/bash\npytest /tests/test_state.py\necho 1 > /logs/verifier/reward.txt\n",
}


def tree(root: Path) -> Path:
    read_one = {"tests/test_state.py": 'assert Path("/app/answer.txt").read_text() == "4"\n'}
    read_two = {"tests/test_state.py": 'for f in ("/app/a.py", "/app/b.py"): run(f)\n'}
    write_bundle(root / "tasks" / "answer", {**TASK, **read_one})
    write_bundle(root / "tasks" / "programs", {**TASK, **read_two})
    copies = {"environment/Dockerfile": "FROM x\nCOPY logs /app/logs\n"}
    write_bundle(root / "tasks" / "logs", {**TASK, **read_one, **copies})
    compose = {"environment/docker-compose.yaml": "services: {}\n"}
    write_bundle(root / "tasks" / "services", {**TASK, **read_one, **compose})
    write_bundle(root / "tasks" / "half", {**TASK, "tests/test.sh": None})
    write_bundle(root / "tasks" / "broken", {**TASK, "task.toml": "["})
    write_bundle(root / "tasks" / "plain", TASK)
    return root


async def test_a_harbor_tree_is_listed_with_reasons(tmp_path: Path):
    ended = await command.wavetank("benchmarks", "import", tree(tmp_path), "--from", "harbor")

    assert (ended.code, ended.err) == (0, "")
    assert ended.out == (
        "answer  expressible: its tests read one text, /app/answer.txt, and its container holds no "
        "files of its own: ask for the text as the last message, and grade final_answer of "
        "_session.\n"
        "broken  not expressible: its task.toml is no TOML.\n"
        "half  not expressible: it is not whole: it has no tests/test.sh.\n"
        "logs  not expressible: its container holds files that the agent needs; "
        "a world has tables only.\n"
        "plain  not expressible: its tests run programs in a container; a world has tables only.\n"
        "programs  not expressible: its tests look at files of a container "
        "(/app/a.py, /app/b.py); a world has tables.\n"
        "services  not expressible: it starts several containers (docker-compose.yaml); "
        "a world has none.\n"
        "7 tasks, 1 expressible. Nothing was written.\n"
    )


PROJECT = '[project]\nname = "sort"\ndependencies = ["verifiers>=0.2", "datasets"]\n'
MODULE = """\
import verifiers.v1 as vf


class SaidTask(vf.Task[Data, vf.State]):
    @classmethod
    def toolsets(cls, config): return [Wiki(config)]

    @vf.reward(weight=1.0)
    async def answered(self, trace: vf.Trace) -> float:
        return float(self.data.answer in (trace.last_reply or ""))


class JudgedTask(vf.Task):
    @vf.reward
    async def liked(self, trace) -> float:
        return await self.judge(trace)


class BuiltTask(vf.Task):
    @vf.reward
    async def compiles(self, runtime) -> float:
        return (await runtime.run("make")).code == 0


class Sort(vf.Taskset[SaidTask]):
    def load(self): raise SystemExit("nobody runs this")
"""


async def test_a_verifiers_package_is_listed_by_its_kinds_of_tasks(tmp_path: Path):
    folder = write_bundle(tmp_path, {"pyproject.toml": PROJECT, "sort/taskset.py": MODULE})

    ended = await command.wavetank("benchmarks", "import", folder, "--from", "verifiers", "--json")

    assert ended.code == 0
    tasks = json.loads(ended.out)["tasks"]
    assert {each["task"]: each["expressible"] for each in tasks} == {
        "SaidTask": True,
        "JudgedTask": False,
        "BuiltTask": False,
    }
    assert [each["reason"] for each in tasks] == [
        "its rewards (answered) read what the agent said: a Python check of the last message, "
        "with its toolsets as tools/handlers.py.",
        "its rewards (liked) ask a model; a world's verifiers reach nothing.",
        "its rewards (compiles) look into the agent's runtime; a world has tables only.",
    ]


async def test_a_scripted_user_is_a_reason_against(tmp_path: Path):
    user = f"{MODULE}\n\nclass SortEnv(vf.SingleAgentEnv):\n    async def run(self, task, agents): ...\n"
    folder = write_bundle(tmp_path, {"pyproject.toml": PROJECT, "sort/taskset.py": user})

    ended = await command.wavetank("benchmarks", "import", folder, "--from", "verifiers")

    assert ended.out.startswith(
        "SaidTask  not expressible: its environment speaks between the agent's messages; "
        "a world's session has one prompt.\n"
    )
    assert ended.out.endswith("3 tasks, 0 expressible. Nothing was written.\n")


async def test_what_is_no_such_tree_is_refused(tmp_path: Path):
    harbor = await command.wavetank("benchmarks", "import", tmp_path, "--from", "harbor")
    package = await command.wavetank("benchmarks", "import", tmp_path, "--from", "verifiers")
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    empty = await command.wavetank("benchmarks", "import", tmp_path, "--from", "verifiers")

    assert [each.code for each in (harbor, package, empty)] == [1, 1, 1]
    assert "it holds no harbor task: none of its folders has a task.toml." in harbor.out
    assert "its pyproject.toml does not depend on verifiers." in package.out
    assert "none of its classes has a method marked as @reward." in empty.out
    assert list(tmp_path.iterdir()) == [tmp_path / "pyproject.toml"]
