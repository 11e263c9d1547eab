#!/usr/bin/env python3
"""Checks what no schema of Kubernetes does: that the manifests fit together and allow as little as they can.

    manifests.py FOLDER FILE…

Writes into the folder: each jobs.toml of theirs; `pods.yaml`, their pods as `podman play kube` runs them; and the command
of each probe of these.
"""

import base64
import copy
import sys
from pathlib import Path

import yaml


def main(folder, files):
    found = [document for file in files for document in yaml.safe_load_all(Path(file).read_text())]
    by_name = {(document["kind"], document["metadata"]["name"]): document for document in found}
    assert len(by_name) == len(found), "two documents have one name"
    sets = [document for document in found if document["kind"] == "StatefulSet"]
    assert len(sets) == 2, "no StatefulSet was found"
    for document in sets:
        check_set(document, by_name)
    for document in found:
        if document["kind"] == "ConfigMap":
            Path(folder, document["metadata"]["name"] + ".toml").write_text(document["data"]["jobs.toml"])
    pods = [part for document in found for part in for_podman(copy.deepcopy(document), folder)]
    Path(folder, "pods.yaml").write_text(yaml.safe_dump_all(pods))


def for_podman(document, folder):
    """What podman runs of a document: it knows no StatefulSet, and of a Secret only encoded data."""
    if document["kind"] == "Secret":
        data = {name: base64.b64encode(text.encode()).decode() for name, text in document.pop("stringData").items()}
        return [document | {"data": data}]
    if document["kind"] == "StatefulSet":
        return pod_and_claims(document, folder)
    return [document] if document["kind"] in ("ConfigMap", "PersistentVolumeClaim") else []


def pod_and_claims(document, folder):
    name, template = document["metadata"]["name"], document["spec"]["template"]
    pod, claims = template["spec"], []
    for claim in document["spec"]["volumeClaimTemplates"]:
        volume, claimed = claim["metadata"]["name"], f"{claim['metadata']['name']}-{name}-0"
        claims.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": claimed}, "spec": claim["spec"]})
        pod["volumes"].append({"name": volume, "persistentVolumeClaim": {"claimName": claimed}})
    for volume in pod["volumes"]:
        for kind in volume.keys() & {"secret", "configMap"}:
            # The default of Kubernetes; podman 4.3 wants it written.
            volume[kind]["optional"] = False
    [container] = pod["containers"]
    # Without a network there are no ports to map. The test makes the probes itself.
    container.pop("ports", None)
    for probe in [key for key in container if key.endswith("Probe")]:
        command = container.pop(probe).get("exec", {}).get("command", ["", "", ""])
        Path(folder, f"{name}.{probe}.sh").write_text(command[2] + "\n")
    metadata = {"name": f"{name}-0", "labels": template["metadata"]["labels"]}
    return claims + [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}]


def check_set(document, by_name):
    name, spec = document["metadata"]["name"], document["spec"]
    template = spec["template"]
    labels = template["metadata"]["labels"]
    assert spec["replicas"] == 1, f"{name}: a queue is used by one process"
    assert spec["selector"]["matchLabels"].items() <= labels.items(), f"{name}: its selector finds no pod"
    service = by_name["Service", spec["serviceName"]]
    assert service["spec"]["selector"].items() <= labels.items(), f"{name}: its Service finds no pod"

    pod = template["spec"]
    assert pod["automountServiceAccountToken"] is False, name
    assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0, name
    [container] = pod["containers"]
    allowed = container["securityContext"]
    assert allowed["readOnlyRootFilesystem"] is True and allowed["allowPrivilegeEscalation"] is False, name
    assert allowed["capabilities"]["drop"] == ["ALL"] and "add" not in allowed["capabilities"], name
    assert container["livenessProbe"] and container["readinessProbe"] and container["resources"]["limits"], name

    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    claims = {claim["metadata"]["name"] for claim in spec["volumeClaimTemplates"]}
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == claims | set(volumes), f"{name}: volumes and mounts differ"
    for volume in volumes.values():
        wanted = [
            ("ConfigMap", volume.get("configMap", {}).get("name")),
            ("Secret", volume.get("secret", {}).get("secretName")),
            ("PersistentVolumeClaim", volume.get("persistentVolumeClaim", {}).get("claimName")),
        ]
        for kind, named in wanted:
            assert named is None or (kind, named) in by_name, f"{name}: there is no {kind} {named}"


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
