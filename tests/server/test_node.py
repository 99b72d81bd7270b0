"""A client in another language: the official Node library, where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.server.stage import Stage, says

SCRIPT = Path(__file__).with_name("client.mjs")


@pytest.fixture
def modules() -> str:
    """The folder that holds `openai` for Node: NITKA_NODE_MODULES, or beside the script."""
    folder = os.environ.get("NITKA_NODE_MODULES") or str(SCRIPT.with_name("node_modules"))
    if shutil.which("node") is None or not (Path(folder) / "openai").is_dir():
        pytest.skip("no node, or no `openai` in NITKA_NODE_MODULES")
    return folder


def test_the_official_node_library(stage: Stage, modules: str) -> None:
    stage.script.answer = lambda body: says("Вишнёвый, три коржа.")
    command = ["node", str(SCRIPT), f"{stage.url}/v1", stage.key("turns"), modules]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "whole": "Вишнёвый, три коржа.",
        "streamed": "Вишнёвый, три коржа.",
        "refused": {"name": "BadRequestError", "status": 400, "param": "n"},
        "response": "Вишнёвый, три коржа.",
    }
    assert [text for role, text in stage.rows() if role == "user"] == ["Какой торт?", "Сколько коржей?"]
    assert [role for role, _ in stage.script.texts()] == ["user", "assistant", "user"]
