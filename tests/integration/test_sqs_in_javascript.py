"""AWS's SDK for JavaScript, unchanged, works with the SQS port."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.deep import IS_DEEP
from tests.support.serving import Serving

CLIENT = Path(__file__).parents[1] / "other_languages" / "sqs_client.js"
SDK = "@aws-sdk/client-sqs@3.1175.0"
NODE, NPM = shutil.which("node"), shutil.which("npm")


@pytest.mark.skipif(
    NODE is None or NPM is None or not IS_DEEP, reason="a language beside ours: COLUMNAR_DEEP, node and npm"
)
def test_the_sdk_for_javascript(tmp_path: Path) -> None:
    assert NODE is not None
    assert NPM is not None
    folder = tmp_path / "client"
    folder.mkdir()
    (folder / "package.json").write_text("{}")
    subprocess.run([NPM, "install", "--no-audit", "--no-fund", SDK], cwd=folder, check=True, timeout=100)
    serving = Serving(tmp_path / "store", trigger_modules=(), sqs_port=0).start()
    try:
        words = [NODE, str(CLIENT), f"http://127.0.0.1:{serving.store.sqs_port}"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    finally:
        serving.stop()
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "url": True,
        "first": ["one", "grün", [0, 255]],
        "waits": 0,
        "again": ["one", "2"],
        "sent": [["a"], ["MissingParameter"]],
        "rest": ["three", "two"],
        "left": {"ApproximateNumberOfMessages": "0", "FifoQueue": "true"},
        "error": "QueueDoesNotExist",
    }
