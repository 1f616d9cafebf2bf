"""GPUSpawner: a KubeSpawner that asks the cluster before it promises a GPU."""

__version__ = "0.1.0.dev0"
