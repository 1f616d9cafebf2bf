"""Nodes and running pods of a hub, as the API server shows them: about 9 and 5.9 kB each."""

from collections.abc import Iterator
from hashlib import sha256

from tests.benchmarks.clusters import node, running_pod

STARTED = "2026-11-21T08:00:00Z"


def objects(nodes: int, pods: int) -> Iterator[dict[str, object]]:
    """Yield all nodes, a fifth of them with GPUs, then all pods, evenly over the nodes."""
    for number in range(nodes):
        yield whole_node(number, gpu=number < nodes // 5)
    for number in range(pods):
        place = number % nodes
        gpus = 1 if place < nodes // 5 and number // nodes < 7 else 0
        yield whole_pod(number, place, gpus=gpus)


def whole_node(number: int, *, gpu: bool) -> dict[str, object]:
    """Return a node as etcd holds it."""
    plain = node(number, gpu=gpu)
    metadata = {**plain["metadata"], "uid": _uid(number), "creationTimestamp": STARTED}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {**plain["status"], "conditions": [_at(ready)], "images": _images(number)}
    return {**plain, "apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def _images(number: int) -> list[dict[str, object]]:
    """Return as many images as a kubelet lists: those on offer, and some of 400 others."""
    others = [f"quay.io/project-{(number + 7 * n) % 400}/notebook" for n in range(46)]
    offered = [f"docker.io/library/i:{n}" for n in range(4)]
    return [
        *({"names": [_digest(it), it], "sizeBytes": 2**32} for it in offered),
        *({"names": [_digest(it), f"{it}:1.0"], "sizeBytes": 2**31} for it in others),
    ]


def _digest(name: str) -> str:
    return f"{name.partition(':')[0]}@sha256:{sha256(name.encode()).hexdigest()}"


def whole_pod(number: int, node_number: int, *, gpus: int) -> dict[str, object]:
    """Return a running pod as etcd holds it: `running_pod` plus all fields that no rule reads."""
    plain = running_pod(number, node_number, gpus=gpus)
    [container] = plain["spec"]["containers"]
    user = f"user{number}"
    metadata = {
        **plain["metadata"],
        "creationTimestamp": STARTED,
        "annotations": {"hub.jupyter.org/username": user, "hub.jupyter.org/servername": ""},
        "managedFields": _managed_fields(),
    }
    spec = {
        **plain["spec"],
        "schedulerName": "default-scheduler",
        "restartPolicy": "OnFailure",
        "dnsPolicy": "ClusterFirst",
        "terminationGracePeriodSeconds": 30,
        "serviceAccountName": "default",
        "automountServiceAccountToken": False,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "securityContext": {"fsGroup": 100},
        "containers": [
            {
                **container,
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-11-01",
                "args": ["jupyterhub-singleuser"],
                "env": _environment(user),
                "ports": [
                    {"name": "notebook-port", "containerPort": 8888, "protocol": "TCP"},
                ],
                "resources": {
                    "limits": container["resources"]["requests"],
                    "requests": container["resources"]["requests"],
                },
                "volumeMounts": [{"name": "home", "mountPath": "/home/jovyan"}],
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
                "securityContext": {"runAsUser": 1000, "allowPrivilegeEscalation": False},
            }
        ],
        "tolerations": _tolerations(),
        "affinity": _preferences(),
    }
    metadata["uid"] = _uid(number)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": spec,
        "status": _status(number, node_number),
    }


def _environment(user: str) -> list[dict[str, str]]:
    hub = "http://hub.jhub.svc.cluster.local:8081/hub/api"
    values = {
        "JUPYTERHUB_API_TOKEN": "0123456789abcdef0123456789abcdef",
        "JPY_API_TOKEN": "0123456789abcdef0123456789abcdef",
        "JUPYTERHUB_CLIENT_ID": f"jupyterhub-user-{user}",
        "JUPYTERHUB_API_URL": hub,
        "JUPYTERHUB_ACTIVITY_URL": f"{hub}/users/{user}/activity",
        "JUPYTERHUB_OAUTH_CALLBACK_URL": f"/user/{user}/oauth_callback",
        "JUPYTERHUB_OAUTH_SCOPES": f'["access:servers!server={user}/", "access:servers!user"]',
        "JUPYTERHUB_USER": user,
        "JUPYTERHUB_BASE_URL": "/",
        "JUPYTERHUB_SERVICE_PREFIX": f"/user/{user}/",
        "JUPYTERHUB_SERVICE_URL": f"http://0.0.0.0:8888/user/{user}/",
        "JUPYTERHUB_DEFAULT_URL": "/lab",
        "MEM_LIMIT": "2147483648",
        "MEM_GUARANTEE": "2147483648",
        "CPU_GUARANTEE": "0.5",
        "JUPYTER_IMAGE_SPEC": "quay.io/jupyter/pytorch-notebook:cuda12-2026-11-01",
        "JUPYTER_IMAGE": "quay.io/jupyter/pytorch-notebook:cuda12-2026-11-01",
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _tolerations() -> list[dict[str, object]]:
    own = [
        {"key": key, "operator": "Equal", "value": "user", "effect": "NoSchedule"}
        for key in ("hub.jupyter.org/dedicated", "hub.jupyter.org_dedicated")
    ]
    added = [
        {
            "key": f"node.kubernetes.io/{key}",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 300,
        }
        for key in ("not-ready", "unreachable")
    ]
    return [*own, *added]


def _preferences() -> dict[str, object]:
    expression = {"key": "hub.jupyter.org/node-purpose", "operator": "In", "values": ["user"]}
    preference = {"weight": 100, "preference": {"matchExpressions": [expression]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def _status(number: int, node_number: int) -> dict[str, object]:
    address = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "hostIP": f"10.0.{node_number >> 8}.{node_number & 255}",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": STARTED,
        "qosClass": "Burstable",
        "conditions": [_at({"type": type_, "status": "True"}) for type_ in types],
        "containerStatuses": [
            {
                "name": "notebook",
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-11-01",
                "imageID": f"quay.io/jupyter/pytorch-notebook@sha256:{number:064x}",
                "containerID": f"containerd://{number:064x}",
                "lastState": {},
                "state": {"running": {"startedAt": STARTED}},
            }
        ],
    }


def _at(condition: dict[str, object]) -> dict[str, object]:
    return {"lastProbeTime": None, "lastTransitionTime": STARTED, **condition}


def _managed_fields() -> list[dict[str, object]]:
    """Return managed fields, which are a third of a real pod's bytes."""
    labels = ("app", "component", "hub.jupyter.org/username", "hub.jupyter.org/network-access-hub")
    environment = {
        f'k:{{"name":"{name["name"]}"}}': {".": {}, "f:name": {}} for name in _environment("")[:6]
    }
    container = {
        ".": {},
        "f:args": {},
        "f:env": {".": {}, **environment},
        "f:image": {},
        "f:imagePullPolicy": {},
        "f:name": {},
        "f:resources": {".": {}, "f:limits": {}, "f:requests": {}},
        "f:securityContext": {},
        "f:volumeMounts": {".": {}, 'k:{"mountPath":"/home/jovyan"}': {}},
    }
    made = {
        "f:metadata": {"f:annotations": {}, "f:labels": {f"f:{label}": {} for label in labels}},
        "f:spec": {"f:affinity": {}, "f:containers": {'k:{"name":"notebook"}': container}},
    }
    conditions = {
        f'k:{{"type":"{type_}"}}': {".": {}, "f:status": {}, "f:type": {}}
        for type_ in ("ContainersReady", "Initialized", "Ready")
    }
    reported = {
        "f:status": {
            "f:conditions": conditions,
            "f:containerStatuses": {},
            "f:hostIP": {},
            "f:phase": {},
            "f:podIP": {},
            "f:startTime": {},
        }
    }
    return [
        _written("OpenAPI-Generator", made),
        {**_written("kubelet", reported), "subresource": "status"},
    ]


def _written(manager: str, fields: dict[str, object]) -> dict[str, object]:
    return {
        "manager": manager,
        "operation": "Update",
        "apiVersion": "v1",
        "time": STARTED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def _uid(number: int) -> str:
    return f"00000000-0000-0000-0000-{number:012}"
