"""python -m tests.proofs.wiki_api: the wiki's API by two clients that nobody here wrote.

    schemathesis   sends requests made from the description, correct ones and wrong ones, and compares each answer with
                   it: status, type of content, schema
    TypeScript     a client that @hey-api/openapi-ts generates from the description, checked by tsc, which saves, reads,
                   follows and moves pages (``wiki_api_client.ts``)

Both are fetched from PyPI and npm into a folder of their own; they need Node.js 20 and the network of packages.
The exit status is 0 if schemathesis finds nothing and the TypeScript client ends without an error.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Final

import click

from tests.support.store_thread import StoreThread
from tests.support.wiki_server import running_wiki
from wikka_port.accounts.factory import make_accounts
from wikka_port.config import WikiConfig
from wikka_port.edit_buckets import EditBuckets
from wikka_port.pages import Wiki, clock_ms

SCHEMATHESIS: Final = "schemathesis==4.32.5"
PACKAGES: Final = ("@hey-api/openapi-ts@0.95.0", "typescript@5.9.3", "esbuild@0.28.1", "@types/node@20.19.9")
PAGES: Final = ("HomePage", "Page", "A/B")
# Of the description's own requests some are correct and refused for what the wiki holds: a page that is not there, a
# state that has changed.  These two checks would call every such answer a mistake.
# A second round knows names that are there, and so gets behind "there is no such page".
KNOWN: Final = """
[parameters]
"query.name" = ["HomePage", "Page", "A/B"]
"query.page" = ["Page"]
"query.number" = [1]

[[operations]]
include-path = "/file"
parameters = { "query.name" = ["Plan.txt"] }

[[operations]]
include-path = "/file/content"
parameters = { "query.name" = ["Plan.txt"] }

[[operations]]
include-path = "/file/version"
parameters = { "query.name" = ["Plan.txt"], "query.version" = [1, 2], "query.sure" = [true] }
"""
LEFT_OUT: Final = "positive_data_acceptance,negative_data_rejection"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--examples", default=60, show_default=True, help="Requests of each kind for each operation.")
@click.option("--seed", default=39, show_default=True, help="Of schemathesis's choices.")
@click.option("--tools", type=click.Path(path_type=Path), help="Keep the two clients in this folder.")
def main(examples: int, seed: int, tools: Path | None) -> None:
    """Call the API by schemathesis and by a generated client."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        place = tools or folder / "tools"
        place.mkdir(parents=True, exist_ok=True)
        with StoreThread(folder / "data") as store:
            wiki = Wiki("127.0.0.1", store.port, indexes="application")
            keys = _fill(wiki)
            with running_wiki(wiki) as server:
                failed = _by_schemathesis(place, server.url, keys["Ada"], examples, seed)
                failed += _by_typescript(place, server.url, keys["Rita"])
            wiki.store.close()
    sys.exit(min(failed, 1))


def _fill(wiki: Wiki) -> dict[str, str]:
    """Make some pages and two accounts, and return a key of each."""
    wiki.prepare()
    for page in PAGES:
        wiki.save(page, f"A text of {page} with a [[Link]].", author="Ann", base=0)
    config = WikiConfig(secret=b"s" * 32)
    accounts = make_accounts(wiki.rows, config, lambda: clock_ms() / 1000, EditBuckets.opened(100))
    keys = {}
    for name, admin in (("Ada", True), ("Rita", False)):
        account = accounts.directory.make(name, status="active", admin=admin)
        keys[name] = accounts.keys.issue(account, label="a test", scopes=("read", "write", "admin"), days=1)
    return keys


def _by_schemathesis(place: Path, base: str, key: str, examples: int, seed: int) -> int:
    environment = place / "schemathesis"
    program = environment / "bin" / "schemathesis"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        subprocess.run([environment / "bin" / "pip", "install", "-q", SCHEMATHESIS], check=True)
    found = 0
    for number, settings in enumerate(("", KNOWN)):
        config = place / f"schemathesis-{number}.toml"
        config.write_text(settings)
        found += _round(program, config, base, key, examples, seed)
    click.echo(f"schemathesis: {'FOUND SOMETHING' if found else 'nothing found'}")
    return found


def _round(program: Path, config: Path, base: str, key: str, examples: int, seed: int) -> int:
    done = subprocess.run(
        [
            *(program, "--config-file", config, "run", f"{base}/api/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {key}", "--no-color"),
            *("--max-examples", str(examples), "--seed", str(seed), "--exclude-checks", LEFT_OUT),
        ],
        check=False,
        cwd=config.parent,
    )
    return int(done.returncode != 0)


def _by_typescript(place: Path, base: str, key: str) -> int:
    folder = place / "typescript"
    folder.mkdir(exist_ok=True)
    (folder / "package.json").write_text('{"name": "wiki-client", "private": true, "type": "module"}\n')
    if not (folder / "node_modules").exists():
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=folder, check=True)
    with urllib.request.urlopen(f"{base}/api/v1/openapi.json") as answer:
        (folder / "openapi.json").write_bytes(answer.read())
    shutil.copy(Path(__file__).with_name("wiki_api_client.ts"), folder / "main.ts")
    options = ("--strict", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--noEmit")
    commands = (
        ("npx", "openapi-ts", "-i", "openapi.json", "-o", "client", "-c", "@hey-api/client-fetch", "--silent"),
        ("npx", "tsc", *options, "--skipLibCheck", "main.ts"),
        ("npx", "esbuild", "main.ts", "--bundle", "--platform=node", "--format=esm", "--outfile=main.mjs"),
        ("node", "main.mjs", f"{base}/api/v1", key),
    )
    for command in commands:
        if subprocess.run(command, cwd=folder, check=False).returncode:
            click.echo(f"TypeScript: {' '.join(command[:2])} FAILED")
            return 1
    click.echo("TypeScript: every step as expected")
    return 0


if __name__ == "__main__":
    main()
