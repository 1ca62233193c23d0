"""A MediaWiki on MariaDB, PHP and lighttpd from Debian's packages, unpacked into a folder: nothing is installed.

    python -m wikibench.experiments.lamp unpack PACKAGES              apt-get downloads, dpkg -x unpacks; once
    python -m wikibench.experiments.lamp versions PACKAGES            one line
    python -m wikibench.experiments.lamp configure PACKAGES FOLDER DATABASE_PORT WIKI_PORT
    python -m wikibench.experiments.lamp install PACKAGES FOLDER DATABASE_PORT WIKI_PORT     MediaWiki's installer
    python -m wikibench.experiments.lamp pages PAGES DUMP TITLES      a dump of the thesis's pages, and their names
    python -m wikibench.experiments.lamp php PACKAGES FOLDER WORD...  runs PHP's command line, such as importDump.php

It is the stack of the thesis (lighttpd, PHP as FastCGI, MySQL's successor).  All servers listen on loopback, and the
passwords of the databases are made for a folder and are of use in it alone.
"""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from .debian import unpack_packages

PACKAGES: Final = (
    *("mediawiki", "mariadb-server-core", "mariadb-client-core", "lighttpd"),
    *("php8.2-cli", "php8.2-cgi", "php8.2-mysql", "php8.2-mbstring", "php8.2-xml", "php8.2-intl", "php8.2-apcu"),
)
EXTENSIONS: Final = (
    *("mysqlnd", "mysqli", "ctype", "dom", "fileinfo", "iconv", "intl", "mbstring", "tokenizer", "xml", "xmlreader"),
    *("xmlwriter", "simplexml", "apcu", "phar", "posix"),
)
CHILDREN: Final = 8  # of PHP: four a core; the thesis had 144 on machines of their own
PAGE_BYTES: Final = 8_192
LINKS: Final = 10
_VOCABULARY: Final = """
lorem ipsum dolor sit amet consectetur adipisicing elit sed do eiusmod tempor incididunt ut labore et dolore magna
aliqua enim ad minim veniam quis nostrud exercitation ullamco laboris nisi aliquip ex ea commodo consequat duis aute
irure in reprehenderit voluptate velit esse cillum eu fugiat nulla pariatur excepteur sint occaecat cupidatat non
proident sunt culpa qui officia deserunt mollit anim id est laborum
"""
_WORDS: Final = tuple(_VOCABULARY.split())


def page_name(number: int) -> str:
    """(pure) Return the thesis's name of a page: 0 is Aa, 523 is FfCcDd."""
    return "".join(chr(ord("A") + int(digit)) + chr(ord("a") + int(digit)) for digit in str(number))


def page_text(number: int, pages: int) -> str:
    """(pure) Return 8 KB of words with links at random places; the same number gives the same text."""
    rng = random.Random(number)
    words: list[str] = []
    size = 0
    while size < PAGE_BYTES:
        words.append(rng.choice(_WORDS) + (".\n\n" if rng.random() < 0.01 else ""))
        size += len(words[-1]) + 1
    for _ in range(LINKS):
        words.insert(rng.randrange(len(words)), f"[[{page_name(rng.randrange(pages))}]]")
    return " ".join(words)


def dump(pages: int) -> Iterator[str]:
    """(pure) Yield the lines of a dump that importDump.php reads."""
    yield '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/" version="0.11" xml:lang="en">\n'
    for number in range(pages):
        text = page_text(number, pages)
        yield (
            f"<page><title>{page_name(number)}</title><ns>0</ns><id>{number + 1}</id><revision><id>{number + 1}</id>"
            "<timestamp>2010-01-01T00:00:00Z</timestamp><contributor><username>Maker</username><id>1</id>"
            "</contributor><model>wikitext</model><format>text/x-wiki</format>"
            f'<text xml:space="preserve" bytes="{len(text)}">{escape(text)}</text></revision></page>\n'
        )
    yield "</mediawiki>\n"


def unpack(packages: Path) -> None:
    """Download the packages and what they need and this machine lacks, and unpack them."""
    if (packages / "complete").exists():
        return
    unpack_packages(packages, PACKAGES, ("usr/share/mediawiki", "var/lib/mediawiki"))
    (packages / "complete").touch()


def versions(packages: Path) -> str:
    names = ("mediawiki_", "mariadb-server-core_", "php8.2-cgi_", "lighttpd_")
    found = sorted(path.name for path in (packages / "archives").glob("*.deb") if path.name.startswith(names))
    return ", ".join(" ".join(name.split("_")[:2]).replace("%3a", ":") for name in found)


def configure(packages: Path, folder: Path, database_port: int, wiki_port: int) -> None:
    """Write the files of settings, and make an empty database."""
    root = packages / "root"
    (ini,) = root.glob("usr/lib/php/20*")
    present = [name for name in EXTENSIONS if (ini / f"{name}.so").exists()]
    lines = [f"extension_dir={ini}", "date.timezone=UTC", "memory_limit=256M", "display_errors=stderr"]
    lines += [f"zend_extension={ini}/opcache.so", "opcache.enable_cli=0", "opcache.memory_consumption=128"]
    lines += ["opcache.validate_timestamps=0", "apc.shm_size=128M", *(f"extension={name}" for name in present)]
    (folder / "php.ini").write_text("\n".join(lines) + "\n")
    (folder / "lighttpd.conf").write_text(_lighttpd(root, folder, wiki_port))
    (folder / "password").write_text(secrets.token_hex(16))
    data = folder / "database"
    user = ["--user=root"] if os.geteuid() == 0 else []
    words = [str(root / "usr/bin/mariadb-install-db"), "--no-defaults", f"--basedir={root / 'usr'}"]
    more = [f"--datadir={data}", "--auth-root-authentication-method=normal", "--skip-test-db", "--force"]
    subprocess.run([*words, *more, *user], env=_environment(root, folder), check=True)
    (folder / "my.cnf").write_text(
        f"[mysqld]\nbasedir={root / 'usr'}\ndatadir={data}\nsocket={folder / 'db.sock'}\nport={database_port}\n"
        f"bind-address=127.0.0.1\nlc-messages-dir={root / 'usr/share/mysql'}\npid-file={folder / 'db.pid'}\n"
        "innodb-buffer-pool-size=512M\nmax-connections=151\nskip-log-bin\nskip-name-resolve\n"
        + ("user=root\n" if user else "")
    )


def _lighttpd(root: Path, folder: Path, wiki_port: int) -> str:
    environment = {"PHP_FCGI_CHILDREN": str(CHILDREN), "PHP_FCGI_MAX_REQUESTS": "10000", **_own(root, folder)}
    listed = ", ".join(f'"{name}" => "{value}"' for name, value in environment.items())
    return f"""
server.modules = ("mod_fastcgi")
server.document-root = "{root / "usr/share/mediawiki"}"
server.bind = "127.0.0.1"
server.port = {wiki_port}
server.errorlog = "{folder / "lighttpd.log"}"
server.max-keep-alive-requests = 100000
server.max-fds = 4096
index-file.names = ("index.php")
mimetype.assign = (".css" => "text/css", ".js" => "application/javascript", ".png" => "image/png")
fastcgi.server = (".php" => ((
    "bin-path" => "{root / "usr/bin/php-cgi8.2"}", "socket" => "{folder / "php.sock"}", "max-procs" => 1,
    "bin-environment" => ({listed}), "broken-scriptfilename" => "enable"
)))
"""


def _own(root: Path, folder: Path) -> dict[str, str]:
    return {
        "PHPRC": str(folder),
        "PHP_INI_SCAN_DIR": "",
        "MW_CONFIG_FILE": str(folder / "LocalSettings.php"),
        "LD_LIBRARY_PATH": str(root / "usr/lib/x86_64-linux-gnu"),
    }


def _environment(root: Path, folder: Path) -> dict[str, str]:
    path = f"{root / 'usr/bin'}:{root / 'usr/sbin'}:{os.environ.get('PATH', '')}"
    return {**os.environ, **_own(root, folder), "PATH": path}


def serve(packages: Path, folder: Path, what: str) -> None:
    """Become the database or the web server; never returns."""
    root = packages / "root"
    if what == "database":
        words = [str(root / "usr/sbin/mariadbd"), f"--defaults-file={folder / 'my.cnf'}"]
    else:
        words = [str(root / "usr/sbin/lighttpd"), "-D", "-f", str(folder / "lighttpd.conf")]
        words += ["-m", str(root / "usr/lib/lighttpd")]
    os.execve(words[0], words, _environment(root, folder))  # noqa: S606  it takes the place of this process


def install(packages: Path, folder: Path, database_port: int, wiki_port: int) -> None:
    """Run MediaWiki's own installer, and add what makes the wiki quick: opcache, APCu, no jobs within views."""
    password = (folder / "password").read_text()
    made = ["--dbname=wiki", "--dbuser=wiki", f"--dbpass={password}", f"--dbserver=127.0.0.1:{database_port}"]
    made += ["--installdbuser=root", "--installdbpass=", f"--confpath={folder}", "--scriptpath="]
    made += [f"--server=http://127.0.0.1:{wiki_port}", f"--pass={password}", "Wiki", "Admin"]
    environment = _environment(packages / "root", folder)
    del environment["MW_CONFIG_FILE"]  # it is not there yet
    maintenance = packages / "root/usr/share/mediawiki/maintenance"
    subprocess.run([*_php(packages, folder), str(maintenance / "install.php"), *made], env=environment, check=True)
    with (folder / "LocalSettings.php").open("a") as file:
        file.write(
            "\n$wgMainCacheType = CACHE_ACCEL;\n$wgParserCacheType = CACHE_ACCEL;\n$wgMessageCacheType = CACHE_ACCEL;\n"
            "$wgSessionCacheType = CACHE_DB;\n$wgJobRunRate = 0;\n$wgUsePathInfo = true;\n"
            "$wgArticlePath = '/index.php/$1';\n$wgRateLimits = [];\n$wgPingback = false;\n"
        )


def _php(packages: Path, folder: Path) -> list[str]:
    return [str(packages / "root/usr/bin/php8.2"), "-c", str(folder / "php.ini")]


def main(words: list[str]) -> int:
    """Run a command of the module's docstring."""
    command, *rest = words
    if command == "unpack":
        unpack(Path(rest[0]).absolute())
    elif command == "versions":
        sys.stdout.write(f"{versions(Path(rest[0]))}\n")
    elif command == "pages":
        pages = int(rest[0])
        with open(rest[1], "w", encoding="utf-8") as file:
            file.writelines(dump(pages))
        Path(rest[2]).write_text("".join(f"{page_name(number)}\n" for number in range(pages)), encoding="utf-8")
    else:
        packages, folder = Path(rest[0]).absolute(), Path(rest[1]).absolute()
        if command in ("configure", "install"):
            (configure if command == "configure" else install)(packages, folder, int(rest[2]), int(rest[3]))
        elif command == "serve":
            serve(packages, folder, rest[2])
        elif command == "php":
            script = str(packages / "root/usr/share/mediawiki/maintenance" / rest[2])
            given = [*_php(packages, folder), script, *rest[3:]]
            return subprocess.run(given, env=_environment(packages / "root", folder), check=False).returncode
        else:
            raise SystemExit(f"{command}: no such command of lamp")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
