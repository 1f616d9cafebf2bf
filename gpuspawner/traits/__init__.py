"""The traits of GPUSpawner. Their help texts are the reference documentation.

Begin with `settings`, which reads those of the whole hub, and with `trait_types.setting`, which
reads those of one server.
"""

from gpuspawner.traits.decisions import (
    ENFORCE,
    OFF,
    WARN,
    autoscaler_status,
    autoscaling,
    default_filter_schedulers,
    language,
    messages_url,
    preflight,
    scheduler_version,
    trial_timeout,
)
from gpuspawner.traits.hub import gc_freeze, gpu_use
from gpuspawner.traits.offers import (
    OFFERS,
    accelerators,
    cpu_choices,
    default_accelerator,
    images,
    memory_choices,
    unlisted_image,
    unlisted_memory,
)
from gpuspawner.traits.policies import gpu_weights, policies
from gpuspawner.traits.queue import kueue_priority_class, kueue_queue, queue
from gpuspawner.traits.servers import (
    check_gpus,
    cpu_environment,
    cpu_requested,
    do_not_disrupt,
    keep_cpu_servers_off_accelerators,
    memory_requested,
    preparing_timeout,
    scheduling_timeout,
)

OF_ONE_SERVER = (
    "check_gpus",
    "do_not_disrupt",
    "kueue_priority_class",
    "kueue_queue",
    "language",
    "messages_url",
    "preflight",
    "preparing_timeout",
    "scheduling_timeout",
    "trial_timeout",
)
"""The traits that a profile or a hook may set for one server; all others hold for the whole hub."""
