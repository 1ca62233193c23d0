"""What ``search --json`` and ``replay --json`` write for programs."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.support.fake_wiki import FakeWiki
from wikibench.cli import main


def test_a_search_and_a_replay_write_their_figures(tmp_path: Path) -> None:
    trace, found = tmp_path / "day.trace", tmp_path / "found.json"
    trace.write_text("".join(f"{n} {1190146243 + n / 100:.3f} http://w/Page_{n} -\n" for n in range(20)))
    with FakeWiki() as wiki:
        common = [str(trace), "--target", wiki.url, "--json", str(found), "--lateness", "60s"]
        more = ["--require", "p95<20s", "--duration", "200ms", "--from", "20", "--to", "40"]
        result = CliRunner().invoke(main, ["search", *common, *more])
        assert result.exit_code == 0, result.output
        answer = json.loads(found.read_text())
        assert (answer["format"], answer["why"]) == ("wikibench-search-1", "every rate kept")
        assert answer["rate_per_s"] == 40
        assert [one["rate_per_s"] for one in answer["tries"] if one["kept"]] == [20, 40]
        result = CliRunner().invoke(main, ["replay", *common])
        assert result.exit_code == 0, result.output
    assert json.loads(found.read_text())["requests"]["counted"] == 20
