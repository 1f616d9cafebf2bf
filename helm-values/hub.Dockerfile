# The hub's image of Zero-to-JupyterHub with gpuspawner in it. CHART is the chart's version:
#
#   rm -rf build dist
#   pip wheel --no-deps --wheel-dir dist .
#   docker build --file helm-values/hub.Dockerfile --build-arg CHART=4.4.0 --tag REGISTRY/k8s-hub-gpuspawner:4.4.0-1 .
ARG CHART=4.4.0
FROM quay.io/jupyterhub/k8s-hub:${CHART}

USER root
COPY dist/gpuspawner-*.whl /tmp/
# The constraints are the image's own versions: pip fails before it changes one of them.
RUN pip freeze > /tmp/image.txt \
 && pip install --no-cache-dir --constraint /tmp/image.txt /tmp/gpuspawner-*.whl \
 && rm /tmp/image.txt /tmp/gpuspawner-*.whl
# A number: the chart's pod has runAsNonRoot, which a kubelet can't verify for a user name.
USER 1000
