"""``packaging``: manifests and units are valid, agree with each other, and start the present program."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from columnar.config import StandaloneConfig
from columnar.limits import OPEN_REGIONS, STOP_REGION_S, STOP_S
from columnar.roles.fence_commands import CephFence, storage_fence
from columnar.roles.node import REST_S
from columnar.roles.regionserver import own_ports
from columnar.roles.store_commands import node
from columnar.shell.probe_root import PORT
from tests.support import kubernetes_schemas
from tests.support.packaged_files import (
    DESCRIPTORS,
    MANIFESTS,
    PACKAGING,
    ROOT,
    STOPS_S,
    UNITS,
    command_lines,
    documents,
    name_of,
    of_kind,
    parsed,
    pods,
    unit_command,
)
from tests.support.systemd_units import environment_in, settings, words_of

# --- manifests ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MANIFESTS, ids=name_of)
def test_a_manifest_is_of_its_schemas(path: Path) -> None:
    found = documents(path)
    assert found
    assert [error for document in found for error in kubernetes_schemas.errors_in(document)] == []


def test_the_schemas_refuse_what_kubernetes_would() -> None:
    (document,) = of_kind(PACKAGING / "kubernetes/standalone.yaml", "StatefulSet")
    pod = document["spec"]["template"]["spec"]
    wrong: list[tuple[dict[str, Any], str, Any]] = [
        (document, "kind", "StatefulSets"),
        (document["spec"], "replicas", "one"),
        (document["spec"], "podManagmentPolicy", "Parallel"),
        (document["spec"], "selector", None),
        (pod, "terminationGracePeriodSeconds", True),
        (pod["containers"][0], "args", ["a", 1]),
        (pod["containers"][0]["livenessProbe"]["httpGet"], "port", ["web"]),
        (pod["containers"][0]["resources"]["limits"], "memory", {"is": "4Gi"}),
    ]
    assert kubernetes_schemas.errors_in(document) == []
    for place, name, value in wrong:
        before = dict(place)
        if value is None:
            del place[name]
        else:
            place[name] = value
        assert kubernetes_schemas.errors_in(document), name
        place.clear()
        place.update(before)


def test_the_names_of_all_manifests_differ() -> None:
    names = [(document["kind"], document["metadata"]["name"]) for path in MANIFESTS for document in documents(path)]
    assert len(names) == len(set(names)), "both may be applied in one namespace"


@pytest.mark.parametrize("path", MANIFESTS, ids=name_of)
def test_services_and_policies_mean_the_pods_of_their_file_and_ports_that_these_have(path: Path) -> None:
    labels = [pod["metadata"]["labels"] for _, pod in pods(path)]
    containers = [container for _, pod in pods(path) for container in pod["spec"]["containers"]]
    ports = {port["name"]: port["containerPort"] for container in containers for port in container["ports"]}
    for document in of_kind(path, "Service"):
        assert document["spec"]["selector"] in labels
        for port in document["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    for document in of_kind(path, "NetworkPolicy"):
        assert document["spec"]["podSelector"]["matchLabels"] in labels
        named = {port["port"] for rule in document["spec"]["ingress"] for port in rule.get("ports", [])}
        assert named <= ports.keys()
        own = {"peers", "health"}  # of the nodes, and of the machine's kubelet, whose probes no policy keeps out
        assert named | own == ports.keys() | own, "each other port of a pod is named"
    for document in of_kind(path, "PodDisruptionBudget"):
        assert document["spec"]["selector"]["matchLabels"] in labels
        assert document["spec"]["maxUnavailable"] == 1
        policy = document["spec"].get("unhealthyPodEvictionPolicy")
        assert policy in (None, "IfHealthyBudget"), "a pod that is not ready owns regions, or is one of the majority"


def test_all_ports_of_a_node_are_open_to_nodes_and_to_clients_that_route() -> None:
    """The system chooses the ports of a server, so no rule can name them."""
    (policy,) = of_kind(PACKAGING / "kubernetes/nodes.yaml", "NetworkPolicy")
    (_, pod), *_ = pods(PACKAGING / "kubernetes/nodes.yaml")
    assert own_ports(StandaloneConfig(data="/srv", port=9090)).port == 0
    open_to = [
        source["podSelector"]["matchLabels"]
        for rule in policy["spec"]["ingress"]
        if "ports" not in rule
        for source in rule["from"]
    ]
    assert open_to == [pod["metadata"]["labels"], {"columnar-client": "routing"}]


@pytest.mark.parametrize("path", MANIFESTS, ids=name_of)
def test_a_stateful_set_names_what_is_there(path: Path) -> None:
    claims = {
        document["metadata"]["name"]: document
        for file in MANIFESTS
        for document in of_kind(file, "PersistentVolumeClaim")
    }
    services = {document["metadata"]["name"]: document for document in of_kind(path, "Service")}
    for document, pod in pods(path):
        spec = document["spec"]
        assert spec["selector"]["matchLabels"] == pod["metadata"]["labels"]
        service = services[spec["serviceName"]]["spec"]
        assert spec["replicas"] == 1 or service["clusterIP"] == "None", "each pod has a name"
        volumes = {volume["name"] for volume in pod["spec"].get("volumes", [])}
        volumes |= {claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])}
        for volume in pod["spec"].get("volumes", []):
            if "persistentVolumeClaim" in volume:
                claim = claims[volume["persistentVolumeClaim"]["claimName"]]
                assert spec["replicas"] == 1 or claim["spec"]["accessModes"] == ["ReadWriteMany"]
        for container in pod["spec"]["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            names = {port["name"] for port in container["ports"]}
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                for action in container.get(probe, {}).values():
                    assert not isinstance(action, dict) or action["port"] in names


def test_the_class_of_the_shared_claim_is_there() -> None:
    (claim,) = of_kind(PACKAGING / "kubernetes/cephfs.yaml", "PersistentVolumeClaim")
    (storage,) = of_kind(PACKAGING / "kubernetes/cephfs.yaml", "StorageClass")
    assert claim["spec"]["storageClassName"] == storage["metadata"]["name"]
    assert storage["reclaimPolicy"] == "Retain"


def test_nodes_are_given_the_etcd_of_its_manifest() -> None:
    (etcd,) = of_kind(PACKAGING / "kubernetes/etcd.yaml", "StatefulSet")
    (nodes,) = of_kind(PACKAGING / "kubernetes/nodes.yaml", "StatefulSet")
    (container,) = nodes["spec"]["template"]["spec"]["containers"]
    (address,) = [word.partition("=")[2] for word in container["args"] if word.startswith("--coordination=")]
    name, service = etcd["metadata"]["name"], etcd["spec"]["serviceName"]
    members = [f"{name}-{number}.{service}" for number in range(etcd["spec"]["replicas"])]
    assert address == f"etcd://{','.join(f'{member}:2379' for member in members)}/columnar"
    (container,) = etcd["spec"]["template"]["spec"]["containers"]
    (initial,) = [word.partition("=")[2] for word in container["command"] if word.startswith("--initial-cluster=")]
    assert initial == ",".join(f"{member.partition('.')[0]}=http://{member}:2380" for member in members)


@pytest.mark.skipif(shutil.which("etcd") is None, reason="no etcd")
def test_etcd_knows_its_options() -> None:
    (etcd,) = of_kind(PACKAGING / "kubernetes/etcd.yaml", "StatefulSet")
    (container,) = etcd["spec"]["template"]["spec"]["containers"]
    options = {word.partition("=")[0] for word in container["command"][1:]}
    said = subprocess.run(["etcd", "--help"], capture_output=True, text=True, check=False)
    assert options - set(re.findall(r"--[a-z-]+", said.stdout + said.stderr)) == set()


@pytest.mark.parametrize("path", MANIFESTS, ids=name_of)
def test_containers_have_no_rights_that_they_do_not_need(path: Path) -> None:
    for _, pod in pods(path):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["spec"]["automountServiceAccountToken"] is False
        for container in pod["spec"]["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert "memory" in container["resources"]["limits"]


@pytest.mark.parametrize("name", ["standalone.yaml", "nodes.yaml"])
def test_probes_ask_for_pages_that_there_are(name: str) -> None:
    sources = "".join(path.read_text() for path in (ROOT / "columnar/webui").glob("*.py"))
    for _, pod in pods(PACKAGING / "kubernetes" / name):
        (container,) = pod["spec"]["containers"]
        paths = {
            probe: container[probe]["httpGet"]["path"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")
        }
        for path in paths.values():
            assert f'"{path}"' in sources
        assert paths["livenessProbe"] == "/livez", "a restart ends no full disk"
        assert paths["readinessProbe"] == "/readyz"
        ports = {container[probe]["httpGet"]["port"] for probe in ("startupProbe", "readinessProbe", "livenessProbe")}
        assert ports == {"health"}, "probes show no certificate, which the pages may ask for"


@pytest.mark.parametrize("name", ["standalone.yaml", "nodes.yaml"])
def test_pods_have_time_to_stop_and_little_room_in_memory(name: str) -> None:
    for _, pod in pods(PACKAGING / "kubernetes" / name):
        (container,) = pod["spec"]["containers"]
        before_s = drain_before_stop(container)[1] if "lifecycle" in container else 0
        assert pod["spec"]["terminationGracePeriodSeconds"] >= before_s + STOPS_S + max(20, REST_S)
        (place,) = [one["value"] for one in container["env"] if one["name"] == "TMPDIR"]
        assert place in {mount["mountPath"] for mount in container["volumeMounts"]}, "the root is read-only"


def drain_before_stop(container: dict[str, Any]) -> tuple[list[str], int]:
    """Return the drain before a pod's stop, and the seconds that all before the stop may take."""
    shell, flag, line = container["lifecycle"]["preStop"]["exec"]["command"]
    assert (shell, flag) == ("sh", "-c")
    drain, pause = line.split(";")
    timeout, seconds, program, *words = shlex.split(drain)
    assert (timeout, program) == ("timeout", "columnar"), "a server that hangs does not keep the stop waiting"
    sleep, pause_s = shlex.split(pause)
    assert sleep == "sleep"
    return words, int(seconds) + int(pause_s)


def check_drain(words: list[str]) -> dict[str, Any]:
    """Check that the command line is a drain of a node until its restart; return its options."""
    assert words[0] == "drain"
    found = parsed(words)
    assert (found["until_restart"], found["wait"], found["dry_run"], found["name"]) == (True, True, False, None)
    return found


def test_a_pod_is_drained_before_its_stop_under_its_own_name() -> None:
    ((_, pod),) = pods(PACKAGING / "kubernetes/nodes.yaml")
    (container,) = pod["spec"]["containers"]
    words, before_s = drain_before_stop(container)
    found = check_drain(words)
    assert found["node"] == "$POD_NAME", "the shell knows it; Kubernetes replaces $(POD_NAME) in no preStop"
    assert "--name=$(POD_NAME)" in container["args"]
    assert {"POD_NAME", "COLUMNAR_STORE"} <= {one["name"] for one in container["env"]}
    assert found["timeout"] + 10 < before_s, "the command ends by itself, and the Services forget the pod"


# --- flags, ports, paths, user -------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "words"), list(command_lines()), ids=lambda one: one if isinstance(one, str) else "")
def test_a_command_line_is_one_that_the_program_takes(name: str, words: list[str]) -> None:
    found = parsed(words)
    assert found["data"].startswith("/")
    assert found["host"]


@pytest.mark.parametrize("name", ["standalone.yaml", "nodes.yaml"])
def test_ports_and_paths_agree(name: str) -> None:
    for document, pod in pods(PACKAGING / "kubernetes" / name):
        (container,) = pod["spec"]["containers"]
        given = dict(word.removeprefix("--").split("=", 1) for word in container["args"][1:])
        ports = {port["name"]: str(port["containerPort"]) for port in container["ports"]}
        assert ports["thrift"] == given["port"]
        assert ports["web"] == given["web-port"]
        assert ports["health"] == given["health-port"]
        assert ports.get("peers") == given.get("peer-port")
        assert pod["metadata"]["annotations"]["prometheus.io/port"] == given["web-port"]
        (data,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "data"]
        assert data == given["data"], document["metadata"]["name"]


def test_the_probe_tries_the_folder_of_the_nodes() -> None:
    ((_, pod),) = pods(PACKAGING / "kubernetes/probe.yaml")
    ((_, nodes),) = pods(PACKAGING / "kubernetes/nodes.yaml")
    assert pod["spec"]["securityContext"] == nodes["spec"]["securityContext"]
    assert pod["spec"]["volumes"][0] == nodes["spec"]["volumes"][0]
    page = (ROOT / "docs/kubernetes.md").read_text()
    commands = re.findall(r"^kubectl exec .*-- columnar (probe-root .*?)(?:   #.*)?$", page, re.M)
    assert len(commands) == 2
    for command in commands:
        found = parsed(shlex.split(command))
        assert found["folder"] == pod["spec"]["containers"][0]["volumeMounts"][0]["mountPath"]
    port = pod["spec"]["containers"][0]["ports"][0]["containerPort"]
    assert f"--listen columnar-probe-0.columnar-probe:{port}\n" in page
    assert port == PORT


def test_the_fence_of_the_page_is_one_that_the_manifest_and_the_program_take() -> None:
    page = (ROOT / "docs/kubernetes.md").read_text()
    argument, mount, volume = [
        yaml.safe_load(re.sub(r" +# .*", "", line))[0]
        for line in re.findall(r"^ +(- .*) # (?:args|volumeMounts|volumes)$", page, re.M)
    ]
    (document,) = of_kind(PACKAGING / "kubernetes/nodes.yaml", "StatefulSet")
    pod = document["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert "--fence-command" not in " ".join(container["args"]), "the image has no command ceph"
    container["args"].append(argument)
    container["volumeMounts"].append(mount)
    pod["volumes"].append(volume)
    assert kubernetes_schemas.errors_in(document) == []
    found = parsed([word.replace("$(POD_IP)", "10.1.2.3") for word in container["args"]])
    assert isinstance(storage_fence(found["fence_command"], found["data"]), CephFence)
    assert mount["name"] == volume["name"]
    assert f"kubectl create secret generic {volume['secret']['secretName']} " in page
    assert f"--from-file ceph.client.{found['fence_command'].rpartition(' ')[2]}.keyring" in page
    assert volume["secret"]["defaultMode"] == 0o440, "for the group of the pod; YAML takes 0440 as octal"


# --- units -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", UNITS, ids=name_of)
def test_a_unit_gives_the_store_what_it_needs(path: Path) -> None:
    unit = settings(path)
    assert float(unit["TimeoutStopSec"][0]) >= STOPS_S + max(20, REST_S), "the node says what it waits for first"
    assert int(unit["LimitNOFILE"][0]) >= DESCRIPTORS
    assert unit["KillMode"] == ["mixed"]
    assert unit["Restart"] == ["always"]
    assert unit["User"] == unit["Group"] == ["columnar"]
    words = unit_command(path)
    data = words[words.index("--data") + 1]
    assert unit["RequiresMountsFor"] == [data]
    writable = {f"/var/lib/{name}" for name in unit.get("StateDirectory", [])} | set(unit.get("ReadWritePaths", []))
    assert writable == {data}
    assert unit["Type"] == ["notify"]
    assert int(unit["WatchdogSec"][0]) >= 60, "a loop that is busy for long is not stuck"
    assert unit["LogsDirectory"] == ["columnar"], "docs/service.md has a log file there"
    names = ["COLUMNAR_NODE=%l"] if "node" in words else []
    sockets = f"TMPDIR=/run/{unit['RuntimeDirectory'][0]}"
    assert unit["Environment"] == [sockets, *names, f"COLUMNAR_DATA={data}"], "commands of the user reach sockets"
    assert "PrivateTmp" not in unit


def test_a_node_is_drained_before_its_stop_which_goes_on_in_any_case() -> None:
    path = PACKAGING / "systemd/columnar-node.service"
    unit = settings(path)
    found = check_drain(unit_command(path, "ExecStop"))
    assert unit["ExecStop"][0].startswith("-"), "a drain that fails is no failure of the unit"
    assert found["timeout"] + 20 < float(unit["TimeoutStopSec"][0])
    started = parsed(unit_command(path))
    assert (found["node"], started["data"]) == (started["name"], "/srv/columnar")
    words = unit_command(path, "ExecStop")
    assert words[words.index("--data") + 1] == started["data"]


def test_a_fenced_node_is_started_again_however_often() -> None:
    unit = settings(PACKAGING / "systemd/columnar-node.service")
    assert unit["StartLimitIntervalSec"] == ["0"]
    assert unit["ProtectSystem"] == ["strict"]


def test_the_example_of_a_fence_reaches_the_node_as_one_argument() -> None:
    text = (PACKAGING / "systemd/node.env").read_text()
    (example,) = re.findall(r"^#(COLUMNAR_OPTIONS=.*--fence-command.*)$", text, re.M)
    unit = settings(PACKAGING / "systemd/columnar-node.service")
    (line,) = unit["ExecStart"]
    variables = environment_in("\n".join([*unit["Environment"], text, example]))
    _, *words = words_of(line, variables)
    found = parsed(words)
    assert (found["fence_command"], found["servers"]) == ("cephfs --id columnar-fence", 2)
    assert isinstance(storage_fence(found["fence_command"], found["data"]), CephFence)
    page = (ROOT / "docs/shared-folders.md").read_text()
    assert f"--fence-command '{found['fence_command']}'" in page
    braced = words_of(line.replace("$COLUMNAR_OPTIONS", "${COLUMNAR_OPTIONS}"), variables)
    assert braced[-1].startswith("--servers 2 --fence-command"), "with braces all options would be one word"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd-analyze")
@pytest.mark.parametrize("path", UNITS, ids=name_of)
def test_systemd_takes_the_unit(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_text(path.read_text().replace("/opt/columnar/bin/columnar", sys.executable))
    drop_in = tmp_path / f"{path.name}.d" / "credentials.conf"
    drop_in.parent.mkdir()
    drop_in.write_text((PACKAGING / "systemd/credentials.conf").read_text().replace("\n#LoadC", "\nLoadC"))
    checked = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")
    copy.write_text(copy.read_text().replace("KillMode=mixed", "KilMode=mixed"))
    checked = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, check=False)
    assert "KilMode" in checked.stderr, "a slip is noticed"


def test_the_credentials_are_options_of_the_store() -> None:
    text = (PACKAGING / "systemd/credentials.conf").read_text()
    loaded = {name for name, _ in re.findall(r"^#?LoadCredential=(\S+):(/etc/columnar/\S+)$", text, re.M)}
    given = dict(re.findall(r"(COLUMNAR_\w+)=%d/(\S+)", text))
    assert set(given.values()) == loaded
    variables = {option.envvar for option in node.params if isinstance(option, click.Option)}
    assert given.keys() <= variables


def test_the_bounds_that_the_manifests_name() -> None:
    for name in ("standalone.yaml", "nodes.yaml"):
        text = " ".join((PACKAGING / "kubernetes" / name).read_text().replace("#", " ").split())
        assert f"{STOP_S:g} s, and {STOP_REGION_S * 1_000:g} ms for each of at most {OPEN_REGIONS:,} regions" in text
