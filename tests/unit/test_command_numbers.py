"""Numbers that no call can hold are said to be wrong where they are typed, without a store."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from columnar.cli import main

ADD = ("trigger", "add", "t", "m:f")


@pytest.mark.parametrize(
    "words",
    [
        (*ADD, "--timeout", "nan"),
        (*ADD, "--timeout", "inf"),
        (*ADD, "--timeout", "0"),
        (*ADD, "--timeout", "1e300"),
        (*ADD, "--attempts", "99999999999"),
        (*ADD, "--batch", "2", "--within", "nan"),
        (*ADD, "--batch", "2", "--within", "61"),
        ("trigger", "wait", "--timeout", "nan"),
        ("trigger", "wait", "--timeout", "1e300"),
        ("trigger", "dead", "list", "--limit", "99999999999"),
        ("view", "groups", "v", "-n", "99999999999999999999"),
        ("drain", "s2", "--timeout", "nan"),
    ],
    ids=" ".join,
)
def test_a_number_that_no_call_holds_is_a_mistake_of_usage(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, words, env={"COLUMNAR_STORE": "127.0.0.1:1"})
    assert result.exit_code == 2, result.output
    assert isinstance(result.exception, SystemExit), result.exception
    assert "Invalid value for" in result.output
