"""``wikibench trace cut, sample, scrub, map``: a trace in, another one out."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from wikibench.addresses.paths import name_path
from wikibench.commands.passes import OUT, TRACES, PathsWithQueries, ReadProgress, Span, noted, page_of
from wikibench.errors import PlanError
from wikibench.options import Share
from wikibench.statuses import CONTEXT, report_errors
from wikibench.targets.map_files import load_map
from wikibench.targets.target import parse_target
from wikibench.targets.titles import titles_of_file, titles_of_wiki
from wikibench.trace.files import write_trace
from wikibench.trace.lines import MISSING, Request
from wikibench.trace.sampling import HOT, PageCounts, PageSample, choose_pages
from wikibench.trace.scrubbing import WEEK_US, Askers, Scrub, address_of, safe_parameter, weeks_to_shift
from wikibench.trace.source import Trace


@click.command(context_settings=CONTEXT)
@TRACES
@click.option("--from", "begin", help="Begin here: 08:00 of the first day (UTC), +2h, or 2024-01-31T08:00.")
@click.option("--to", "end", help="End before this moment, in the same forms.")
@OUT
def cut(sources: tuple[str, ...], begin: str | None, end: str | None, out: str) -> None:
    """Take a stretch of time out of a trace.

    \b
      wikibench trace cut day/ --from 08:00 --to 10:00 --out morning/
      wikibench trace cut day/ --from +13h --to +14h --out hour14.trace.gz

    The command opens only the parts of a folder that lie in that stretch.
    """
    with report_errors(), ReadProgress() as note:
        if begin is None and end is None:
            raise PlanError("give --from, --to or both, as --from 08:00 --to 10:00")
        found, span = Trace(sources).open_all(begin, end), Span()
        kept = _required(
            span.over(noted(found.read(), note, lambda: f"{span.count:,} requests")), found, "in the window"
        )
        step = f"cut: from {begin or 'its beginning'} to {end or 'its end'}"
        write_trace(out, kept, found.dropped(), found.history(step))
    click.echo(f"{out}: {span.count:,} requests over {span.words()}", err=True)


@click.command(context_settings=CONTEXT)
@TRACES
@OUT
@click.option("--pages", type=Share(), help="Keep all requests of this share of the pages: a smaller wiki.")
@click.option("--requests", "requests_share", type=Share(), help="Keep this share of the requests: a lower rate.")
@click.option("--visitors", type=Share(), help="Keep all requests of this share of the visitors (read --visitors).")
@click.option(
    "--hot",
    type=Share(),
    default=HOT,
    show_default=True,
    help="Thin pages that would be over this share of the sample.",
)
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same sample.")
def sample(
    sources: tuple[str, ...],
    out: str,
    pages: float | None,
    requests_share: float | None,
    visitors: float | None,
    hot: float,
    seed: int,
) -> None:
    """Take a sample of a trace that is like it.

    \b
      wikibench trace sample day/ --pages 10% --out small/                   a tenth of the wiki
      wikibench trace sample day/ --requests 10% --out thin.trace.gz         a tenth of the rate
      wikibench trace sample day/ --visitors 10% --out few/                  a tenth of the visitors

    Pages (or visitors) are chosen so that their requests come to the share, too, and the curve of popularity keeps its
    shape. Pages that alone would be over --hot of the sample keep their share of the traffic instead of all of it.
    wikibench trace check says how alike the two are.
    """
    with report_errors(), ReadProgress() as note:
        given = {"pages": pages, "requests": requests_share, "visitors": visitors}
        shares = {name: share for name, share in given.items() if share is not None}
        if len(shares) != 1:
            raise PlanError("give either --pages, --requests or --visitors, as --pages 10%")
        ((by, share),) = shares.items()
        if not share > 0:
            raise PlanError("a share of 0 keeps nothing")
        found, counts, chosen = Trace(sources).open_all(), PageCounts(), None
        name_of: Callable[[Request], str] = page_of if by == "pages" else _visitor_of
        paths = PathsWithQueries()
        if by != "requests":
            for request in noted(found.read(), note, lambda: f"{len(counts.counts):,} {by}"):
                counts.add(name_of(request))
                if by == "pages":
                    paths.add(request)
            if by == "visitors" and counts.counts.keys() <= {""} and counts.total:
                raise PlanError(f"{found.name}: its lines have no visitors; make it by wikibench trace read --visitors")
            chosen = choose_pages(counts.counts, share, seed, hot if by == "pages" else 1.0)
        before, after = Span(), Span()
        passing = _required(before.over(noted(found.read(), note, lambda: f"{after.count:,} kept")), found)
        kept = _sampled(passing, share, chosen, name_of, random.Random(seed))
        step = f"sample: {share:.4%} of the {by}, seed {seed}"
        write_trace(out, after.over(kept), found.dropped(), found.history(step))
    click.echo(f"{out}: {after.count:,} of {before.count:,} requests, {after.count / before.count:.2%}", err=True)
    if chosen is not None:
        click.echo(
            f"{by}: {len(chosen.kept):,} of {len(counts.counts):,} whole, and {len(chosen.thinned)} thinned because "
            f"each would be over {hot if by == 'pages' else 1:.2%} of the sample",
            err=True,
        )
    if paths.warning():
        click.echo(paths.warning(), err=True)


def _visitor_of(request: Request) -> str:
    return request.attribute("v")


def _sampled(
    requests: Iterable[Request],
    share: float,
    chosen: PageSample | None,
    name_of: Callable[[Request], str],
    rng: random.Random,
) -> Iterator[Request]:
    for request in requests:
        chance = rng.random()
        if chance < share if chosen is None else chosen.keeps(name_of(request), chance):
            yield request


def _required(requests: Iterable[Request], found: Trace, where: str = "in it") -> Iterator[Request]:
    """Yield the requests; raise PlanError if there are none."""
    count = 0
    for request in requests:
        count += 1
        yield request
    if not count:
        raise PlanError(f"{found.name}: no request {where}")


@click.command(context_settings=CONTEXT)
@TRACES
@OUT
@click.option(
    "--allow", "allowed", default="", metavar="NAMES", help="Query parameters that stay, such as title,action."
)
@click.option(
    "--rare",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Rename pages that fewer visitors asked for (without visitors in the trace: that were asked for less often).",
)
@click.option("--rename", is_flag=True, help="Rename all pages.")
@click.option("--keep-times", is_flag=True, help="Leave the dates; else they are moved by weeks to January 2001.")
def scrub(sources: tuple[str, ...], out: str, allowed: str, rare: int, rename: bool, keep_times: bool) -> None:
    """Take out of a trace what could say something of a visitor, so that it can be handed on.

    \b
      wikibench trace scrub day/ --out public/
      wikibench trace scrub day/ --allow title --rename --out public/

    Dropped are hosts, visitors' numbers, texts of edits, and query parameters that are not allowed by name. Addresses
    that few asked for get a new name: secret links, searches and pages of persons are among them. The names are made
    with a key that is thrown away. The manifest of a folder says what was done.
    """
    parameters = frozenset(safe_parameter(name.strip()) for name in allowed.split(",") if name.strip())
    with report_errors(), ReadProgress() as note:
        found, askers, seen = Trace(sources).open_all(), Askers(rare), Span()
        first = next(iter(found.read()), None)
        if first is None:
            raise PlanError(f"{found.name}: no request in it")
        if not rename:
            for request in seen.over(noted(found.read(), note, lambda: f"{seen.count:,} requests")):
                askers.add_request(address_of(request, parameters), _visitor_of(request))
        weeks = 0 if keep_times else weeks_to_shift(first.time_us)
        how = Scrub(secrets.token_bytes(32), askers.common, parameters, weeks * WEEK_US)
        span = Span()
        steps = [
            f"scrub: hosts, visitors, texts of edits and query parameters dropped, {_but(parameters)}",
            "scrub: all pages renamed" if rename else f"scrub: pages that fewer than {rare} asked for renamed",
            *([] if keep_times else ["scrub: times moved by whole weeks"]),
        ]
        scrubbed = (how.request_of(request) for request in noted(found.read(), note, lambda: f"{span.count:,} written"))
        write_trace(out, span.over(scrubbed), found.dropped(), found.history(*steps))
    click.echo(f"{out}: {span.count:,} requests; {len(how.common):,} addresses keep their names", err=True)
    for step in steps:
        click.echo(step, err=True)


def _but(parameters: frozenset[str]) -> str:
    return f"but {', '.join(sorted(parameters))}" if parameters else "all of them"


@click.command("map", context_settings=CONTEXT)
@TRACES
@OUT
@click.option(
    "--onto", "titles", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Names, one a line."
)
@click.option("--target", help="Ask this wiki for its page names (GET /api/titles).")
@click.option("--map", "map_name", default="plain", show_default=True, help="How it lists them; see replay --help.")
@click.option("--seed", default=1, show_default=True, help="Of which page gets which name.")
def onto(sources: tuple[str, ...], out: str, titles: Path | None, target: str | None, map_name: str, seed: int) -> None:
    """Give each page of a trace the name of one page of another wiki.

    \b
      wikibench trace map day/ --onto titles.txt --out mapped/
      wikibench trace map day/ --target http://127.0.0.1:8080 --out mapped/

    The popularity and the times of the trace then meet pages that the target has. Views of pages that were missing in
    the log get names that the target does not have.
    """
    with report_errors(), ReadProgress() as note:
        if (titles is None) == (target is None):
            raise PlanError("give either --onto FILE or --target URL: whose names do the pages get?")
        wiki = load_map(map_name)
        names = titles_of_file(titles) if titles is not None else titles_of_wiki(parse_target(str(target)), wiki)
        found, new = Trace(sources).open_all(), dict[str, str]()
        rng, known, span = random.Random(seed), frozenset(names), Span()
        rng.shuffle(names)
        for request in noted(found.read(), note, lambda: f"{len(new):,} pages"):
            page = page_of(request)
            if page not in new and not request.is_missing:
                if len(new) >= len(names):
                    raise PlanError(
                        f"{found.name} has more pages than the {len(names):,} names: take fewer of its pages first, by "
                        "wikibench trace sample --pages 10%"
                    )
                new[page] = f"/{name_path(names[len(new)])}"
        passing = _required(noted(found.read(), note, lambda: f"{span.count:,} written"), found)
        mapped = (_mapped(request, new, known, seed) for request in passing)
        step = f"map: pages onto {len(names):,} names, seed {seed}"
        write_trace(out, span.over(mapped), found.dropped(), found.history(step))
    click.echo(f"{out}: {span.count:,} requests of {len(new):,} pages, onto {len(names):,} names", err=True)


def _mapped(request: Request, new: dict[str, str], known: frozenset[str], seed: int) -> Request:
    page = page_of(request)
    url = new.get(page)
    if url is None or request.flag == MISSING:
        rng = random.Random(f"{seed}\n{page}")
        while (name := f"Missing {rng.randrange(1 << 40):011x}") in known:
            pass
        url = f"/{name_path(name)}"
    return Request(request.time_us, url, request.flag, request.counter, request.attributes)
