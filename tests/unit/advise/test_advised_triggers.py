"""The triggers of a page are code that runs: they keep their tables over random histories."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from columnar.advise.rules import design_of
from columnar.advise.text import page
from columnar.triggers.api import Delete, Put
from columnar.triggers.testing import assert_converges, effects_of
from tests.support.advised import SYSTEMS, design_for, schema_of, workload


def module_of(text: str, folder: Path) -> ModuleType:
    (code,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    path = folder / "my_triggers.py"
    path.write_text(code)
    spec = importlib.util.spec_from_file_location("advised_triggers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("system", SYSTEMS)
def test_triggers_of_a_page_can_be_imported(system: str, tmp_path: Path) -> None:
    text = page(design_for(system))
    module = module_of(text, tmp_path)
    names = re.findall(r"^def ([a-z]\w*)\(", text, re.M)
    assert len(names) >= 4
    assert all(callable(getattr(module, name)) for name in names)


def test_links_and_indexes_of_wikka_converge(tmp_path: Path) -> None:
    made = module_of(page(design_for("wikka")), tmp_path)
    assert effects_of(made.pages_link_from, row=b"p", before={b"link_to:a": b"1"}, after={b"link_to:b": b"1"}) == [
        Delete("pages", b"a", [b"link_from:p"]),
        Put("pages", b"b", {b"link_from:p": b"1"}),
    ]
    assert_converges(made.pages_link_from, {"pages": {"link_to:x": [b"1"], "link_to:y": [b"1"]}}, seeds=20)
    assert_converges(made.users_by_email, {"users": {"account:email": [b"a@b", b"c@d"]}}, seeds=20)
    assert_converges(made.pages_in_order_of_time, {"pages": {"meta:time": [b"1", b"2", b"3"]}}, seeds=20)
    cells = {"comment:20240105-ann": [b"hello"], "comment:20240106-bob": [b"bye"]}
    assert_converges(made.comments_in_order_of_time, {"pages": cells}, seeds=20)


def test_indexes_of_several_columns_converge(tmp_path: Path) -> None:
    made = module_of(page(design_for("wordpress")), tmp_path)
    columns = {"type": [b"post", b"page"], "status": [b"draft", b"publish"], "date": [b"1", b"2"]}
    cells = {f"meta:post_{name}": values for name, values in columns.items()}
    assert_converges(made.posts_by_post_type_post_status_in_order_of_post_date, {"posts": cells}, seeds=20)
    named = {"meta:post_name": [b"a", b"b"], "meta:post_type": [b"post"]}
    assert_converges(made.posts_by_post_name_post_type, {"posts": named}, seeds=20)


def test_a_part_of_a_row_key_is_cut_out_of_it(tmp_path: Path) -> None:
    """The end of a key is cut from its end: the parent's key may have a / in it."""
    made = module_of(page(design_for("mediawiki")), tmp_path)
    found = effects_of(
        made.revision_by_actor_in_order_of_timestamp, row=b"0/A/B/2024/7", before={}, after={b"meta:actor": b"5"}
    )
    assert found == [
        Put("revision_by_actor_in_order_of_timestamp", b"5/2024/0/A/B/2024/7", {b"k:key": b"0/A/B/2024/7"})
    ]


def test_an_index_of_values_within_a_cell_is_to_be_filled_in() -> None:
    schema = schema_of("wordpress")
    log = ["SELECT * FROM wp_posts WHERE ID = 1"] * 2 + ["SELECT * FROM wp_postmeta WHERE post_id = 5"] * 2
    text = page(design_of(schema, workload([*log, "SELECT post_id FROM wp_postmeta WHERE meta_value = 'x'"], schema)))
    assert "# TODO: a bytes value for each meta_value" in text
