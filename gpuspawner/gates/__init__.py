"""What JupyterHub and KubeSpawner call for a start: the form, the options, the pod, the no."""
