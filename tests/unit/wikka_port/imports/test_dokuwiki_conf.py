"""Settings of a DokuWiki: what cannot be read never means that everybody may read the pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.markdown_vault import write
from wikka_port.imports import dokuwiki_conf
from wikka_port.imports.dokuwiki_accounts import DokuWikiUsers
from wikka_port.imports.dokuwiki_acl import Acl, TooManyLines
from wikka_port.imports.dokuwiki_conf import UnreadSettings, interwiki_in, settings_in, text_in_conf
from wikka_port.imports.dokuwiki_people import acl_of
from wikka_port.wikkawiki.account_move import AccountReport

ACL = "# rights\n*\t@ALL\t0\n"
OFF = "<?php\n$conf['useacl']      = 0;                //Use Access Control Lists\n"


def conf_with(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        write(folder, f"conf/{name.replace('_', '.')}", text)
    return folder / "conf"


@pytest.mark.parametrize(
    ("local", "counts"),
    [
        ("<?php\n$conf['useacl'] = 1;\n", True),
        ("<?php\n$conf['useacl'] = true;\n", True),
        ('<?php\n$conf["useacl"] = TRUE;\n', True),
        ("<?php $conf['useacl'] = '1';", True),
        ("<?php\n$conf['title'] = 'x'; $conf[ 'useacl' ] = 1;\n", True),
        ("<?php\n$conf['useacl'] = ON_BY_DEFAULT;\n", True),
        ("<?php\n$conf['useacl'] = 1;\n/*\n$conf['useacl'] = 0;\n*/\n", True),
        ("<?php\n$conf['useacl'] = 0;\n", False),
        ("<?php\n$conf['useacl'] = false;\n", False),
        ("<?php\nif ($conf['useacl'] == 1) { }\n", False),
        ("<?php\n", False),
    ],
)
def test_rights_count_however_they_are_switched_on(tmp_path: Path, local: str, counts: bool) -> None:
    settings = settings_in(conf_with(tmp_path, dokuwiki_php=OFF, local_php=local))
    assert (acl_of("", ACL, settings) is not None) is counts


def test_rights_without_a_setting_count_if_there_are_any(tmp_path: Path) -> None:
    settings = settings_in(conf_with(tmp_path, local_php="<?php\n$conf['title'] = 'x';\n"))
    assert acl_of("", ACL, settings) is not None
    assert acl_of("", "# only a comment\n\n", settings) is None


def test_a_file_that_is_there_and_cannot_be_read_is_no_missing_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = conf_with(tmp_path, dokuwiki_php=OFF)
    assert text_in_conf(conf, "local.php") == text_in_conf(None, "local.php") == ""
    write(tmp_path, "elsewhere.php", "<?php\n$conf['useacl'] = 1;\n")
    (conf / "local.php").symlink_to(tmp_path / "elsewhere.php")
    with pytest.raises(UnreadSettings, match=r"local\.php cannot be read: it is a link to another place"):
        settings_in(conf)
    (conf / "local.php").unlink()
    (conf / "interwiki.conf").mkdir()
    with pytest.raises(UnreadSettings, match="no regular file"):
        interwiki_in(conf)
    monkeypatch.setattr(dokuwiki_conf, "_BYTES_MAX", 8)
    write(tmp_path, "conf/acl.auth.php", "*\tb\t8\n")
    assert text_in_conf(conf, "acl.auth.php") == "*\tb\t8\n"
    write(tmp_path, "conf/acl.auth.php", "*\tb\t8\n*\t@ALL\t0\n")
    with pytest.raises(UnreadSettings, match="longer than 8 bytes"):
        text_in_conf(conf, "acl.auth.php")


def test_no_line_of_rights_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "# begin\n" + "".join(f"ns{number}:*\t@ALL\t0\n" for number in range(10_000))
    assert len(Acl.of(text, ()).lines) == 10_000
    with pytest.raises(TooManyLines, match=r"acl\.auth\.php has more than 10,000 lines"):
        Acl.of(f"{text}secret:*\t@ALL\t0\n", ())
    monkeypatch.setattr("wikka_port.imports.dokuwiki_accounts._LINES_MAX", 2)
    assert len(DokuWikiUsers("a:x:A:a@b.example:user\nb:x:B:b@b.example:user\n", "", AccountReport()).rows) == 2
    with pytest.raises(TooManyLines, match=r"users\.auth\.php"):
        DokuWikiUsers("a:x:A:a@b:user\nb:x:B:b@b:user\nc:x:C:c@b:user\n", "", AccountReport())
