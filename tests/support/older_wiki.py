"""A wiki's folder made by an older checkout, kept in ``tests/data``, for tests that today's program takes it over.

    python -m tests.support.older_wiki --checkout FOLDER      makes it anew

``FOLDER`` is a checkout of c7b7b20, the last commit before accounts and rights, with its environment in ``.venv``.  Its
own programs import the small dump, edit through its own wiki, and write ``pages.json`` into the archive: by name the
number, author and digest of each revision.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.measure.wiki_import import Checkout, _run, _wait_for_triggers

DATA: Final = Path(__file__).parents[1] / "data"
ARCHIVE: Final = DATA / "wiki-before-accounts.tar.xz"
BYTES_MAX: Final = 300_000
# In a process of the older checkout: a second wiki's worth of edits, then all that its pages hold.
EDITING: Final = """
import sys
from wikka_port.pages import Wiki
wiki = Wiki("127.0.0.1", int(sys.argv[1]))
for number in range(12):
    wiki.save(f"Edited {number}", f"Text {number} with [[Edited {number + 1}]] and WikiWord.", author="Ada", base=0)
for base in (1, 2, 3):
    wiki.save("Edited 3", f"Once more {base}: [[HomePage]]", author="Visitor", note=f"the {base}.", base=base)
wiki.save("Root", "{{recentchanges}} {{pageindex}}", author="127.0.0.1", base=0)
assert wiki.settle("", 60)
"""
TELLING: Final = """
import hashlib, json, sys
from wikka_port.pages import Wiki
wiki = Wiki("127.0.0.1", int(sys.argv[1]))
names, found = wiki.names(limit=10_000), {}
for name in names:
    found[name] = [
        [one.number, one.author, one.note, one.time_ms, hashlib.sha256(one.body.encode()).hexdigest()[:16]]
        for one in wiki.revisions(name, limit=1_000, bodies=True)
    ]
print(json.dumps(found))
"""


def make(checkout: Checkout, archive: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="columnar-older-wiki-") as temporary:
        folder = Path(temporary)
        with checkout.store(folder / "data") as (port, _):
            _run(checkout, ["wikka_port", "import", str(DATA / "small-dump.xml"), "--store", f"127.0.0.1:{port}"])
            _run(checkout, ["-c", EDITING, str(port)])
            _wait_for_triggers(port)
            _, said = _run(checkout, ["-c", TELLING, str(port)])
        (folder / "pages.json").write_text(said)
        with tarfile.open(archive, "w:xz") as tar:
            for name in ("data", "pages.json"):
                tar.add(folder / name, name)
    if archive.stat().st_size > BYTES_MAX:
        raise SystemExit(f"{archive} is {archive.stat().st_size} bytes large, {BYTES_MAX} at most")


def unpacked(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Return the data folder, and the contents of its pages."""
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder, filter="data")
    return folder / "data", json.loads((folder / "pages.json").read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checkout", type=Path, required=True)
    make(Checkout("old", parser.parse_args().checkout.resolve()), ARCHIVE)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
