"""Example configuration: JupyterHub on Kubernetes, with a choice of GPUs.

It works with the cluster of KUBECONFIG or of the hub's service account. `make demo` loads this file
on a local cluster, and localcluster/demo_config.py has what it adds. You add an authenticator, and
the addresses at which users and servers reach the hub. With the Zero-to-JupyterHub chart the same
lines go into `hub.config` and `hub.extraConfig`; see helm-values/.
"""

# ruff: noqa: ERA001  (the code in comments is there for you to use)

import gpuspawner

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (JupyterHub provides it)

# GPU models
#
# If you configure none, gpuspawner reads the models from the labels of the present nodes: the
# labels of the clouds, and of NVIDIA's, AMD's and Intel's programs. If no label names a model, as
# on AKS, it takes the instance type. The hub's log says what it found.
#
# Configure them to set names, to offer images and sizes for certain models only, and for pools that
# can be empty: an empty pool has no labels. `default_accelerator = ""` makes "no GPU" the default.
#
#   c.GPUSpawner.accelerators = {
#       "a100": {
#           "display_name": "NVIDIA A100",
#           "description": "40 GB, for training",
#           "counts": [1, 2],
#           "node_selector": {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
#           "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
#           "memory_choices": ["16Gi", "32Gi"],
#       },
#       "l4": {
#           "display_name": "NVIDIA L4",
#           "node_selector": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
#           "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
#           # An autoscaler adds up to four of these nodes, each in about eight minutes.
#           "scale_up": {"max_nodes": 4, "minutes": 8},
#       },
#   }
#   c.GPUSpawner.default_accelerator = ""

# Images
#
# With `"accelerators": ["a100"]` an image is offered for this model only; None in the list means
# "no GPU".
c.GPUSpawner.images = {
    "minimal": {
        "display_name": "Python",
        "image": "quay.io/jupyter/minimal-notebook:2026-10-05",
    },
    "pytorch": {
        "display_name": "PyTorch with CUDA 12",
        "image": "quay.io/jupyter/pytorch-notebook:cuda12-2026-10-05",
    },
}

# People may wait in line for a server for which there is no room right now.
c.GPUSpawner.queue = True

# Sizes, as Kubernetes writes them. A server's choice is both its request and its limit.
c.GPUSpawner.memory_choices = ["2Gi", "4Gi", "8Gi", "16Gi"]
c.GPUSpawner.cpu_choices = [1, 2, 4]

# Policies
#
# They say who may have what. A policy without "users", "groups" or "roles" is for everybody. See
# docs/how-to/policies.md.
#
#   c.GPUSpawner.policies = {
#       "everybody": {"except": {"groups": ["staff"]}, "gpus_per_user": 1, "lifetime": "8h"},
#       "course": {"groups": ["ml-2026"], "gpus_per_group": 8},
#   }

# All settings of KubeSpawner keep their meaning, for servers with and without a GPU. Only
# start_timeout counts from the moment on when the volumes and the image are there.
c.KubeSpawner.http_timeout = 120  # a server that imports many packages starts slowly

# This makes GPUSpawner the spawner, and checks the whole configuration, also the lines after this
# one. If something is wrong, the hub doesn't start. It also makes the hub read the cluster. The
# hub's service account needs the rights in helm-values/rbac.yaml for this. Without them servers
# start unchecked, and the hub's log says so.
gpuspawner.configure(c)
