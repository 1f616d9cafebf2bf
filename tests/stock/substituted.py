"""A pytest plugin that runs KubeSpawner's tests on GPUSpawner: ``-p tests.stock.substituted``.

It replaces only the package's public name. KubeSpawner's own modules keep their class.
"""

import kubespawner

from gpuspawner import GPUSpawner

kubespawner.KubeSpawner = GPUSpawner
