"""wikka.config.php is read as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wikka_port.wikkawiki.php_config import BadConfig, read_config

FILE = r"""<?php
/** array( 'not' => 'this' ) */
$wakkaConfig = array(
    'mysql_password' => 'it\'s \\ a "secret"', // a comment, with 'quotes'
    'root_page' => "Home\tPage\$",  # another
    'pages_purge_time' => '0', 'number' => -12.5, 'yes' => true, 'no' => null,
    'path' => dirname(__FILE__) . '/a,b)',
    "list" => array('a' => 'b', 'c'),
    'admin_users' => 'AdaLovelace, GraceHopper', /* last */
);
$wakkaConfig['later'] = system('rm -rf /');
?>"""


def test_texts_numbers_and_expressions() -> None:
    config = read_config(FILE)
    assert config.values == {
        "mysql_password": 'it\'s \\ a "secret"',
        "root_page": "Home\tPage$",
        "pages_purge_time": "0",
        "number": "-12.5",
        "yes": "1",
        "no": "",
        "admin_users": "AdaLovelace, GraceHopper",
    }
    assert config.unread == ["path", "list"]
    assert config.listed("admin_users") == ["AdaLovelace", "GraceHopper"]
    assert config.listed("missing") == []
    assert read_config("$wakkaConfig = ['a' => 'b'];").values == {"a": "b"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<?php echo 1;", r"no \$wakkaConfig"),
        ("$wakkaConfig = array('a' 'b')", "line 1: “=>”"),
        ("$wakkaConfig = array(\n'a' => 'b", "line 2: an end of the value"),
        ("$wakkaConfig = array(a => 'b')", "a text in quotes"),
        ("$wakkaConfig = array('a' => f(", "an end of the value"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BadConfig, match=said):
        read_config(text)


@given(st.dictionaries(st.text(min_size=1), st.text()), st.booleans())
def test_what_the_installer_writes_comes_back(values: dict[str, str], long: bool) -> None:
    def quote(text: str) -> str:
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    entries = ",\n\t".join(f"{quote(name)} => {quote(value)}" for name, value in values.items())
    text = f"<?php\n$wakkaConfig = array(\n\t{entries});\n?>" if long else f"$wakkaConfig=[{entries}];"
    assert read_config(text).values == values
