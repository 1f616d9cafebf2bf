"""The reference configuration: JupyterHub on Kubernetes, with a choice of GPUs.

It works against whatever cluster KUBECONFIG or the hub's service account names; `make demo` runs
exactly this file on a local one. What it leaves to you: an authenticator, and the addresses at
which people reach the hub and servers reach it. With the Zero-to-JupyterHub chart the same lines
go into `hub.config` and `hub.extraConfig`; see helm-values/.
"""

# ruff: noqa: ERA001  (what is commented out is there to be taken)

import gpuspawner

c = get_config()  # type: ignore[name-defined]  # noqa: F821  (JupyterHub provides it)

# GPU models
#
# With none configured, the models are read from the labels of the nodes that there are: those of
# NVIDIA's GPU feature discovery, GKE, EKS, AKS and Karpenter. The hub's log says what it found.
#
# Configure them to give names, to tie images and sizes to them, and for pools that can be empty,
# which no label can tell of. `default_accelerator = ""` makes "no GPU" the first choice.
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
#           # An autoscaler brings up to four of these nodes, each in about eight minutes.
#           "scale_up": {"max_nodes": 4, "minutes": 8},
#       },
#   }
#   c.GPUSpawner.default_accelerator = ""

# Images
#
# `"accelerators": ["a100"]` would tie an image to a model; None in that list is "no GPU".
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

# Sizes, as Kubernetes writes them. What is chosen is both requested and the limit.
c.GPUSpawner.memory_choices = ["2Gi", "4Gi", "8Gi", "16Gi"]
c.GPUSpawner.cpu_choices = [1, 2, 4]

# Everything that KubeSpawner can be told keeps its meaning, for servers with and without a GPU.
c.KubeSpawner.start_timeout = 300  # a large image takes its time
c.KubeSpawner.http_timeout = 120  # and so does a server that imports much

# Checks all of the above and what follows, and stops the hub where something is wrong; makes
# GPUSpawner the spawner; begins to read the cluster, for which the hub's service account needs the
# rights in helm-values/rbac.yaml. Without them servers start unchecked, and the log says so.
gpuspawner.configure(c)
