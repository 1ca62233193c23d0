"""The settings of a DokuWiki: ``conf/*.php``, read as text and never run, and its prefixes of other wikis.

    $conf['start'] = 'start';           of dokuwiki.php, local.php and local.protected.php, the last one counts
    $conf['plugin']['x']['y'] = 1;      settings of plugins are passed over
    wp  https://en.wikipedia.org/wiki/{NAME}        of interwiki.conf and interwiki.local.conf

A value that is an expression is passed over.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from wikka_port.imports.source_folder import SourceFolder
from wikka_port.imports.source_text import decoded

_BYTES_MAX: Final = 1_000_000  # of a file of settings
_FILES: Final = ("dokuwiki.php", "local.php", "local.protected.php")
_PREFIXES: Final = ("interwiki.conf", "interwiki.local.conf")
_SETTING: Final = re.compile(
    r"^\s*\$conf\[(['\"])(\w{1,60})\1\]\s*=\s*(?:'([^'\\\n]{0,500})'|\"([^\"\\$\n]{0,500})\"|(\d{1,9}))\s*;",
    re.MULTILINE,
)
_PREFIX: Final = re.compile(r"^([A-Za-z0-9._]{1,30})[ \t]+(\S{1,500})\s*$", re.MULTILINE)


def data_of(folder: Path) -> Path:
    """Return the data folder of a DokuWiki, which may be ``folder`` itself."""
    return folder / "data" if (folder / "data" / "pages").is_dir() else folder


def conf_of(folder: Path) -> Path | None:
    """Return the folder of settings: within the DokuWiki, or beside its data folder."""
    tried = (folder / "conf", *([folder.resolve().parent / "conf"] if folder.resolve().name == "data" else []))
    return next((one for one in tried if one.is_dir()), None)


def settings_in(conf: Path | None) -> dict[str, str]:
    """Return the settings that are texts or numbers."""
    found: dict[str, str] = {}
    for name in _FILES:
        for setting in _SETTING.finditer(text_in_conf(conf, name)):
            found[setting[2]] = next((one for one in setting.groups()[2:] if one is not None), "")
    return found


def interwiki_in(conf: Path | None) -> dict[str, str]:
    """Return the addresses of other wikis by their prefixes; those of pages of the wiki itself are left out."""
    found: dict[str, str] = {}
    for name in _PREFIXES:
        for line in _PREFIX.finditer(text_in_conf(conf, name)):
            if not line[2].startswith(":"):
                found[line[1].lower()] = line[2].replace("&amp;", "&")
    return found


def text_in_conf(conf: Path | None, name: str) -> str:
    """Return the text of a file of settings, or "" if there is none that can be read."""
    if conf is None:
        return ""
    try:
        return decoded(SourceFolder(conf).read_bytes(name, _BYTES_MAX))[0]
    except OSError:
        return ""
