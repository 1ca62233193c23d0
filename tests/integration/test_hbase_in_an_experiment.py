"""The system ``hbase`` brought from packages: 50 pages get in, one is read, and no process stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.deep import IS_DEEP

READ = "import sys, urllib.request as u; t = u.urlopen(sys.argv[1]).read(); print(len(t), file=open(sys.argv[2], 'w'))"
EXPERIMENT = f"""
title = "One page"
[sizes.quick]
pages = 50
[[loads]]
name = "A"
seconds = {{ quick = 1 }}
result = "{{cell}}/a.json"
steps = [["{{python}}", "-c", "{READ}", "{{url}}/Aa", "{{cell}}/a.json"], ["{{check}}"]]
statuses = [0]
"""


def commands() -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not IS_DEEP, reason="fetches HBase with Maven: with COLUMNAR_DEEP")
@pytest.mark.lasts(180)
@pytest.mark.timeout(900)
def test_hbase_from_packages(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(EXPERIMENT)
    words = [sys.executable, "-m", "wikibench.cli", "experiment", str(tmp_path / "one.toml"), "--systems", "hbase"]
    done = subprocess.run([*words, "--out", str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out/results.json").read_text())["cells"]
    assert found["fill.hbase"]["figures"]["pages"] == 50
    assert found["fill.hbase"]["figures"]["versions"][0].startswith("hbase 2.6.1, hadoop 3.3.5, ")
    assert found["A.hbase"]["figures"] > 8_192
    assert found["A.hbase"]["statuses"] == [0, 0], "every index is right"
    assert found["A.hbase"]["roles"]["store"]["cpu_s"] > 0
    assert found["A.hbase"]["counters"]["store_calls"] > 1
    assert [one for one in commands() if str(tmp_path) in one] == []
    pages = tmp_path / "out/systems/hbase-quick/hbase/data/hbase/data/default/pages"
    files = [one for one in pages.glob("*/body/*") if one.suffix != ".crc"]
    assert len(files) == 1, "one file of the only region"
