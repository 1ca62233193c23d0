"""WikkaWiki's own default pages by our parser: the marks that stay in the text of each.

    python -m tests.measure.default_pages FOLDER [--formatter]

FOLDER is a checkout of WikkaWiki (1.4.2 has 34 such pages; its licence is not ours, so nothing of it is here), or a
folder of texts.  Its pages are made by their own PHP files, so a checkout needs ``php``.  A mark is stray if it stands
in the text of the page outside code, and was not typed between double quotes.  ``--formatter`` renders each page by
WikkaWiki's own formatter too and prints where the two differ in headings, rules, list items, boxes and cells.  Fails if
a mark is stray or no page is found.
"""

from __future__ import annotations

import argparse
import html
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from wikka_port.markup.document import parse, render

PAGES = "lang/en/defaults"
_MARKS = re.compile(r"==+|\*\*|(?<!:)//|__|##|@@|>>|<<|\|\||\|=\||---+|\{\{|\}\}|''|#%|\[\[|\]\]|%%|\"\"|::c::")
_LITERAL = re.compile(r'(%%.*?%%)|""(.*?)""', re.DOTALL)
_MARKS_BESIDE_TAGS = re.compile(r"(<[a-zA-Z/][^>]*>)|(?:[^\w\s<>]|_){2,}|[<>]{2,}")
_CODE = re.compile(r"<(pre|code|kbd)\b.*?</\1>", re.DOTALL)
_COUNTED = {
    "headings": re.compile("<h[1-5]"),
    "rules": re.compile("<hr"),
    "items": re.compile("<li>"),
    "boxes": re.compile('<div class="float'),
    "cells": re.compile("<t[dh][ >]"),
}
_PRINT_PAGE = (
    "function T_($s){return $s;} class Page {function show($f){$config=['default_lang'=>'en']; include $f;}"
    " function __call($n,$a){return '';}} (new Page)->show($argv[1]);"
)
# The formatter asks its wiki for links, actions and a few settings; here each has the plainest answer.
_FORMAT_PAGE = (
    "error_reporting(0); class Wiki { public $config=[]; private $ids=0;"
    " function GetHandler(){return 'show';} "
    " function GetConfigValue($k){return $k=='double_doublequote_html'?'safe':'';}"
    " function Link($t,$h='',$x=''){return '<a>'.htmlspecialchars($x?:$t).'</a>';} function Action($a){return '';}"
    " function ReturnSafeHTML($h){return $h;} function htmlspecialchars_ent($t){return htmlspecialchars($t);}"
    " function Format($t,$f=''){return htmlspecialchars($t);} function HasPageTitle(){return true;}"
    " function SetPageTitle($t){} function CleanTextNode($t){return $t;}"
    " function makeId($g,$i){return $g.++$this->ids;}"
    " function Href(){return '';} function page($f,$text){include $f;}}"
    " $wakka=new Wiki; $wakka->page($argv[1], stream_get_contents(STDIN));"
)


@dataclass(frozen=True, slots=True)
class Stray:
    page: str
    line: int  # of the text as it is shown
    mark: str
    around: str


def default_pages(folder: Path) -> dict[str, str]:
    """Return texts by name, from a checkout of WikkaWiki or from a folder of texts."""
    made = folder / PAGES
    if not made.is_dir():
        return {path.stem: path.read_text() for path in sorted(folder.glob("*.txt"))}
    if shutil.which("php") is None:
        raise SystemExit("php is needed to make the pages of a checkout: install php-cli, or give a folder of texts")
    names = [path for path in sorted(made.glob("*.php")) if not path.stem.startswith("_")]
    return {path.stem: _php(_PRINT_PAGE, path, folder) for path in names}


def _php(code: str, path: Path, folder: Path, text: str = "") -> str:
    command = ["php", "-d", "display_errors=stderr", "-r", code, str(path.resolve())]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=folder).stdout


def stray_marks(page: str, text: str) -> Iterator[Stray]:
    """Yield the marks of markup that readers of the page would see."""
    shown = _CODE.sub(lambda code: "\n" * code.group().count("\n"), _html(_LITERAL.sub(_without_marks, text)))
    plain = html.unescape(re.sub(r"<[^>]*>", "", shown))
    for number, line in enumerate(plain.split("\n"), 1):
        for mark in _MARKS.finditer(line):
            around = line[max(0, mark.start() - 30) : mark.end() + 30].strip()
            yield Stray(page, number, mark.group(), around)


def _without_marks(typed: re.Match[str]) -> str:
    return typed[1] or '""' + _MARKS_BESIDE_TAGS.sub(lambda mark: mark[1] or "x", typed[2]) + '""'


def _html(text: str) -> str:
    return render(parse(text), existing=frozenset(), action=lambda name, arguments: "")


def parts(shown: str) -> Counter[str]:
    """Return the number of blocks of each kind."""
    bare = _CODE.sub("", shown)
    return Counter({kind: len(pattern.findall(bare)) for kind, pattern in _COUNTED.items()})


def compare(folder: Path, pages: Mapping[str, str]) -> int:
    """Print where WikkaWiki's own formatter makes different blocks; return the number of such pages."""
    formatter = folder / "formatters" / "wakka.php"
    different = 0
    for name, text in pages.items():
        theirs, ours = parts(_php(_FORMAT_PAGE, formatter, folder, text)), parts(_html(text))
        if theirs != ours:
            different += 1
            unlike = [
                f"{kind} {theirs[kind]} there, {ours[kind]} here" for kind in _COUNTED if theirs[kind] != ours[kind]
            ]
            print(f"  {name}: {'; '.join(unlike)}")
    print(f"{different} of {len(pages)} pages have other blocks by WikkaWiki's own formatter")
    return different


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--formatter", action="store_true")
    options = parser.parse_args()
    pages = default_pages(options.folder)
    found = [stray for name, text in pages.items() for stray in stray_marks(name, text)]
    for stray in found:
        print(f"  {stray.page}:{stray.line}: {stray.mark} in {stray.around!r}")
    print(f"{len(pages)} pages, {len(found)} stray marks")
    if options.formatter:
        compare(options.folder, pages)
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
