"""What was wrong in TraceBench, the sampler of the original WikiBench: a test for each defect that was found in it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from gauge.popularity import VIEWS, weights
from wikibench.cli import main
from wikibench.commands.passes import page_of
from wikibench.targets.map_files import load_map
from wikibench.trace.lines import parse_line
from wikibench.trace.sampling import choose_pages, page_hash

PAGES = [f"Page {n}" for n in range(20_000)]


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5])
def test_a_share_is_a_share(share: float) -> None:
    """Its hash was signed, and the negative half was always dropped: of 50 % it kept 25, of 0.1 % fifty."""
    hashed = sum(page_hash(1, page) < share * 2**64 for page in PAGES) / len(PAGES)
    assert hashed == pytest.approx(share, rel=0.2, abs=0.001)
    counts = dict(zip(PAGES, (round(1e6 * one) + 1 for one in weights(VIEWS, len(PAGES))), strict=True))
    kept = choose_pages(counts, share, 1)
    assert sum(counts[page] for page in PAGES if page in kept.kept) / sum(counts.values()) <= share * 1.05


def test_a_query_does_not_make_another_page() -> None:
    """It hashed "wiki/X" with a query string and "X" without one, and sampled them apart."""
    pages = {
        page_of(parse_line(f"1190146243.326 {path} -")) for path in ("/wiki/X", "/wiki/X?a=1", "http://w/wiki/X?b")
    }
    assert len(pages) == 1


def test_a_request_for_the_root_is_sampled_as_any_other() -> None:
    """It asked whether to keep such a request, and ignored the answer."""
    root = page_of(parse_line("1190146243326  -"))
    assert page_of(parse_line("1190146243326 / -")) == root
    assert page_hash(1, root) != page_hash(2, root)


def test_a_save_whose_title_is_the_last_parameter_is_read() -> None:
    """It looked for an "&" behind the title, and ended with an exception where there was none."""
    wiki = load_map("mediawiki")
    for query in ("action=submit&title=A_b", "title=A_b&action=submit"):
        assert wiki.kind_of("POST", f"/w/index.php?{query}") == ("save", "A b")
    assert wiki.kind_of("GET", "/index.php?title=A_b") == ("view", "A b")
    for query in ("do=edit&id=a", "id=a&do=edit", "id=a"):
        assert load_map("dokuwiki").kind_of("POST", f"/doku.php?{query}") == ("save", "a")
    assert load_map("dokuwiki").kind_of("POST", "/doku.php?do=login&id=a") == ("other", "")


def test_ways_to_write_a_name_are_one_page() -> None:
    """It took "%3F", blanks, underscores and a small first letter for names of different pages."""
    wiki = load_map("mediawiki")
    paths = ("/wiki/Who_is_it%3F", "/wiki/who%20is%20it%3f", "/w/index.php?title=Who+is_it%3F")
    assert {wiki.kind_of("GET", path)[1] for path in paths} == {"Who is it?"}


def test_a_share_without_a_sign_for_percent_is_told_from_one_with_it() -> None:
    """Its help said percent, and it took thousandths."""
    result = CliRunner().invoke(main, ["trace", "sample", "x", "--pages", "50", "--out", "y"])
    assert result.exit_code == 2
    assert "%" in result.output
