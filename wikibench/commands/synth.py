"""``wikibench synth``: a trace for a wiki, made from Wikipedia's popularity."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import click

from gauge.popularity import EDITS, UNIFORM, VIEWS, by_rank
from wikibench.errors import PlanError
from wikibench.options import Duration, Share
from wikibench.statuses import CONTEXT, report_errors
from wikibench.targets.map_files import load_map
from wikibench.targets.target import parse_target
from wikibench.targets.titles import titles_of_file, titles_of_wiki
from wikibench.trace.files import write_trace
from wikibench.trace.synth import Recipe, size_of, synthesize


@click.command("synth", context_settings=CONTEXT)
@click.option("--titles", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Page names, one a line.")
@click.option("--target", help="Ask this wiki for its page names.")
@click.option("--map", "map_name", default="plain", show_default=True, help="How it lists them; see replay --help.")
@click.option("--out", required=True, help="The trace to write; gzip where it ends in .gz, - for standard output.")
@click.option("--requests", type=click.IntRange(1), help="How many requests.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Requests per second, mean.")
@click.option("--duration", type=Duration(), help="How long, such as 90s, 2m or 24h.")
@click.option("--edits", type=Share(), default=0.0, help="Share of edits, such as 5%. Wikipedia has about 0.3%.")
@click.option("--missing", type=Share(), default=0.0, help="Share of views of pages that do not exist.")
@click.option("--hot", type=Share(), default=0.0, help="From half time on this share of the views asks for one page.")
@click.option("--seed", default=1, show_default=True, help="The same seed gives the same trace.")
@click.option("--day-shape", is_flag=True, help="Let the rate follow a day of Wikipedia, squeezed into the trace.")
@click.option("--even", is_flag=True, help="Equal gaps in place of random arrivals.")
@click.option(
    "--popularity",
    type=click.Choice(["share", "rank", "uniform"]),
    default="share",
    show_default=True,
    help="How Wikipedia's popularity is carried over: by share of the pages, by rank (flatter), or not at all.",
)
def synth(
    titles: Path | None, target: str | None, map_name: str, out: str, seed: int, popularity: str, **given: Any
) -> None:
    """Make a trace for a wiki: what is asked for, and when.

    \b
    Give two of --requests, --rate and --duration:
      wikibench synth --titles names.txt --out small.trace --requests 1000 --rate 50
      wikibench synth --target http://127.0.0.1:8080 --out day.trace.gz --rate 100 --duration 10m \\
                      --edits 5% --missing 2% --day-shape

    `wikibench trace synth` is the same command.

    Views follow the concave popularity of Wikipedia's pages, edits follow that of its edits.
    """
    with report_errors():
        if (titles is None) == (target is None):
            raise PlanError("give either --titles FILE or --target URL: whose pages are asked for?")
        requests, rate = size_of(given["requests"], given["rate"], given["duration"])
        wiki = load_map(map_name)
        names = titles_of_file(titles) if titles is not None else titles_of_wiki(parse_target(str(target)), wiki)
        views, edits = {
            "share": (VIEWS, EDITS),
            "rank": (by_rank(VIEWS, len(names)), by_rank(EDITS, len(names))),
            "uniform": (UNIFORM, UNIFORM),
        }[popularity]
        recipe = Recipe(
            requests,
            rate,
            edits=given["edits"],
            missing=given["missing"],
            hot=given["hot"],
            day=given["day_shape"],
            even=given["even"],
            views_law=views,
            edits_law=edits,
        )
        count = write_trace(out, synthesize(names, recipe, random.Random(seed)))
    click.echo(f"{out}: {count} requests over {recipe.duration_s:.0f} s, {len(names)} pages, seed {seed}", err=True)
