"""The schema of compose files, of the Compose Specification.

``tests/data/compose.json`` is an extract without the descriptions, as the package ``check-jsonschema`` has the schema;
the package itself needs six others.  To renew the extract: ``pip download --no-deps check-jsonschema``, then

    python -m tests.support.compose_schema check_jsonschema-0.39.0-py3-none-any.whl
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from tests.support.json_schema import errors_by, merged, reduced

DATA: Final = Path(__file__).parents[1] / "data" / "compose.json"


def errors_in(document: Any) -> list[str]:
    """Return what the schema refuses, each with its path."""
    extract = json.loads(DATA.read_text())
    return list(errors_by(extract["schema"], document, extract["definitions"], "compose"))


def _extract(wheel: Path) -> dict[str, Any]:
    with zipfile.ZipFile(wheel) as archive:
        schema = json.loads(archive.read("check_jsonschema/builtin_schemas/vendor/compose-spec.json"))
    definitions = {name: reduced(one) for name, one in schema["$defs"].items()}
    definitions = {name: merged(one, definitions) if "allOf" in one else one for name, one in definitions.items()}
    source = f"Compose Specification, Apache License 2.0, by {wheel.name}; see tests/support/compose_schema.py"
    return {"source": source, "schema": reduced(schema), "definitions": definitions}


if __name__ == "__main__":
    DATA.write_text(json.dumps(_extract(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True) + "\n")
