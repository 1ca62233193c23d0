"""The settings of a DokuWiki: ``conf/*.php``, read as text and never run, and its prefixes of other wikis.

    $conf['start'] = 'start';           of dokuwiki.php, local.php and local.protected.php, the last one counts
    $conf['plugin']['x']['y'] = 1;      settings of plugins are passed over
    wp  https://en.wikipedia.org/wiki/{NAME}        of interwiki.conf and interwiki.local.conf

A value that is an expression is passed over, but for ``useacl``, without which everybody may do everything: rights
count if any file sets it, wherever it stands in a line, to something else than "off".  A file that is there and cannot
be read whole ends the import for the same reason.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from wikka_port.imports.source_folder import SourceFolder
from wikka_port.imports.source_text import decoded

_BYTES_MAX: Final = 16_000_000  # of a file of settings, rights or users
_FILES: Final = ("dokuwiki.php", "local.php", "local.protected.php")
_PREFIXES: Final = ("interwiki.conf", "interwiki.local.conf")
_SETTING: Final = re.compile(
    r"^\s*\$conf\[(['\"])(\w{1,60})\1\]\s*=\s*(?:'([^'\\\n]{0,500})'|\"([^\"\\$\n]{0,500})\"|(\d{1,9}))\s*;",
    re.MULTILINE,
)
_PREFIX: Final = re.compile(r"^([A-Za-z0-9._]{1,30})[ \t]+(\S{1,500})\s*$", re.MULTILINE)
USE_ACL: Final = "useacl"
_USE_ACL: Final = re.compile(r"\$conf\[\s*(['\"])useacl\1\s*\]\s*=(?!=)\s*([^;]{0,200})")
_OFF: Final = frozenset({"0", "'0'", '"0"', "''", '""', "false", "null"})


class UnreadSettings(Exception):
    """A file of settings cannot be read whole; ``str()`` says what to do."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(
            f"{path} cannot be read: {why}. It may say who may read the pages: put the file itself there, so that this "
            "command may read it, and call it again"
        )


def data_of(folder: Path) -> Path:
    """Return the data folder of a DokuWiki, which may be ``folder`` itself."""
    return folder / "data" if (folder / "data" / "pages").is_dir() else folder


def conf_of(folder: Path) -> Path | None:
    """Return the folder of settings: within the DokuWiki, or beside its data folder."""
    tried = (folder / "conf", *([folder.resolve().parent / "conf"] if folder.resolve().name == "data" else []))
    return next((one for one in tried if one.is_dir()), None)


def settings_in(conf: Path | None) -> dict[str, str]:
    """Return the settings that are texts or numbers.  Raises UnreadSettings."""
    found: dict[str, str] = {}
    of_rights: list[str] = []
    for name in _FILES:
        text = text_in_conf(conf, name)
        for setting in _SETTING.finditer(text):
            found[setting[2]] = next((one for one in setting.groups()[2:] if one is not None), "")
        of_rights += [one[2].strip().lower() for one in _USE_ACL.finditer(text)]
    if of_rights:
        found[USE_ACL] = "0" if set(of_rights) <= _OFF else "1"
    return found


def interwiki_in(conf: Path | None) -> dict[str, str]:
    """Return the addresses of other wikis by their prefixes; those of pages of the wiki itself are left out.

    Raises UnreadSettings.
    """
    found: dict[str, str] = {}
    for name in _PREFIXES:
        for line in _PREFIX.finditer(text_in_conf(conf, name)):
            if not line[2].startswith(":"):
                found[line[1].lower()] = line[2].replace("&amp;", "&")
    return found


def text_in_conf(conf: Path | None, name: str) -> str:
    """Return the text of a file of settings, or "" if there is none.  Raises UnreadSettings."""
    if conf is None:
        return ""
    try:
        data = SourceFolder(conf).read_bytes(name, _BYTES_MAX + 1)
    except FileNotFoundError:
        return ""
    except OSError as problem:
        is_link = (conf / name).is_symlink()
        why = "it is a link to another place" if is_link else problem.strerror or "it is no regular file"
        raise UnreadSettings(conf / name, why) from None
    if len(data) > _BYTES_MAX:
        raise UnreadSettings(conf / name, f"it is longer than {_BYTES_MAX:,} bytes")
    return decoded(data)[0]
