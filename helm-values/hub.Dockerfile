# The hub's image of Zero-to-JupyterHub with gpuspawner in it. CHART is the chart's version:
#
#   python -m build --wheel
#   docker build --file helm-values/hub.Dockerfile --build-arg CHART=4.4.0 --tag REGISTRY/k8s-hub-gpuspawner:4.4.0 .
ARG CHART=4.4.0
FROM quay.io/jupyterhub/k8s-hub:${CHART}

USER root
COPY dist/gpuspawner-*.whl /tmp/
# Keep the versions that the chart was tested with: install what is missing, upgrade nothing.
RUN pip install --no-cache-dir --upgrade-strategy only-if-needed /tmp/gpuspawner-*.whl \
 && rm /tmp/gpuspawner-*.whl
# A number: the chart's pod has runAsNonRoot, which a kubelet can't verify for a user name.
USER 1000
