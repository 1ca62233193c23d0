"""Prefixes of other wikis from a file: read whole or not at all, and the same in the wiki and in the store's worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from wikka_port import interwiki_file
from wikka_port.cli import main
from wikka_port.interwiki_file import ENVIRONMENT, SITES_MAX, BadInterwiki, load, read_sites
from wikka_port.markup import interwiki
from wikka_port.markup.links import links


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interwiki, "SITES", dict(interwiki.SITES))


def test_the_form_of_wikkawikis_file() -> None:
    text = "# other wikis\n\nCafeHouse   http://cafe.example.org/wiki?\nOurs https://ours.example.org/#\n"
    assert read_sites(text) == {"CafeHouse": "http://cafe.example.org/wiki?", "Ours": "https://ours.example.org/#"}
    assert read_sites("Ask http://x.org/?a=1&amp;p=") == {"Ask": "http://x.org/?a=1&p="}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Ours", "line 1"),
        ("# x\nOurs javascript:alert(1)", "line 2"),
        ("Ours //x.org/", "http://"),
        ("O-urs http://x.org/", "letters and digits"),
        ("http http://x.org/", "another prefix"),
        ("a b c", "line 1"),
        ("\n".join(f"P{n} http://x.org/" for n in range(SITES_MAX + 1)), "most"),
    ],
)
def test_a_file_that_is_none_is_refused_whole(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "interwiki.conf"
    file.write_text("Fine http://fine.example.org/\n" + text if said == "most" else text)
    with pytest.raises(BadInterwiki, match=said):
        load(str(file))
    assert "fine" not in interwiki.SITES


def test_own_prefixes_lead_to_other_wikis_and_replace_known_ones(tmp_path: Path) -> None:
    assert links("[[Ours:Page]]") == ["Ours:Page"]
    file = tmp_path / "interwiki.conf"
    file.write_text("Ours http://ours.example.org/\nWikiPedia https://de.wikipedia.org/wiki/\n")
    assert load(str(file)) == 2
    for markup in ("wikka", "markdown"):
        assert links("[[Ours:Page]] ours:Other", markup=markup) == []
    assert interwiki.address("wikipedia", "Wal") == "https://de.wikipedia.org/wiki/Wal"
    assert interwiki.address("rfc", "1"), "the known ones stay"


def test_the_worker_of_the_store_knows_them(tmp_path: Path) -> None:
    """It imports the module of the functions, as ``--trigger-modules`` says, in the environment that it is given."""
    file = tmp_path / "interwiki.conf"
    file.write_text("Ours http://ours.example.org/\n")
    shown = "from wikka_port.markup.links import links; print(links('[[Ours:Page]] [[There]]'))"
    code = f"import wikka_port.triggers; {shown}"
    environment = {**os.environ, ENVIRONMENT: str(file)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['There']"


def test_a_command_ends_with_a_sentence_where_the_file_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, "/nowhere/interwiki.conf")
    result = CliRunner().invoke(main, ["check"])
    assert result.exit_code == 1
    assert "cannot be read" in result.output
    assert interwiki_file.ENVIRONMENT in os.environ
