"""GPUSpawner: a KubeSpawner whose gates ask the cluster before a pod exists.

The gates are methods, because the traits ``apply_user_options``, ``options_from_form`` and
``options_form`` belong to the administrator. `gpuspawner.gates` has their rules.

`in_front_of` puts GPUSpawner in front of the class that the administrator already uses: many hubs
derive their own class from KubeSpawner. A child of GPUSpawner and of this class, in that order,
runs GPUSpawner's gates first, and then the administrator's methods in the place of those of
KubeSpawner. So no method of theirs can skip a gate, and their ``super()`` is KubeSpawner as before.
"""

from collections.abc import AsyncIterator, Mapping
from functools import cache
from types import MappingProxyType, new_class
from typing import Any

from kubespawner import KubeSpawner
from traitlets import Any as AnyTrait
from traitlets import Bunch, default, validate
from traitlets.config.loader import LazyConfigValue
from traitlets.log import get_logger

from gpuspawner import traits
from gpuspawner.compat import spawner_class
from gpuspawner.compat.class_traits import copy_of, default_of
from gpuspawner.compat.code import mentions
from gpuspawner.compat.kubespawner import (
    DRAWING_LATE,
    Stock,
    as_list,
    others_have,
    until_looked_for,
)
from gpuspawner.gates import administrators_form
from gpuspawner.gates.administrators_form import NONE_YET, PLACE
from gpuspawner.gates.gates import Gates
from gpuspawner.launch.server_state import without_ours
from gpuspawner.start import connection, hooks, request_options
from gpuspawner.start.host import log_name
from gpuspawner.start.source import FormReader


class GPUSpawner(KubeSpawner):  # type: ignore[misc]
    """A KubeSpawner that offers GPUs, and starts a pod only if the cluster can hold it."""

    accelerators = traits.accelerators
    default_accelerator = traits.default_accelerator
    images = traits.images
    memory_choices = traits.memory_choices
    cpu_choices = traits.cpu_choices
    unlisted_image = traits.unlisted_image
    unlisted_memory = traits.unlisted_memory
    memory_requested = traits.memory_requested
    cpu_requested = traits.cpu_requested
    cpu_environment = traits.cpu_environment
    keep_cpu_servers_off_accelerators = traits.keep_cpu_servers_off_accelerators
    do_not_disrupt = traits.do_not_disrupt
    policies = traits.policies
    gpu_weights = traits.gpu_weights
    queue = traits.queue
    gpu_use = traits.gpu_use
    kueue_queue = traits.kueue_queue
    kueue_priority_class = traits.kueue_priority_class
    preflight = traits.preflight
    autoscaling = traits.autoscaling
    autoscaler_status = traits.autoscaler_status
    trial_timeout = traits.trial_timeout
    scheduling_timeout = traits.scheduling_timeout
    preparing_timeout = traits.preparing_timeout
    check_gpus = traits.check_gpus
    language = traits.language
    messages_url = traits.messages_url
    scheduler_version = traits.scheduler_version
    default_filter_schedulers = traits.default_filter_schedulers
    gc_freeze = traits.gc_freeze

    # Administrators' code shares the spawner's attributes: those that aren't traits have names that
    # nobody else uses.
    gpuspawner_stock: Stock
    gpuspawner_gates: Gates
    gpuspawner_has_own_options = False
    """Whether a class that isn't derived from ours reads ``user_options``, as BinderHub's does.

    Then discovered accelerators aren't on offer, because their options would be refused.
    """

    gpuspawner_kept: Mapping[str, object] = MappingProxyType({})
    """The traits whose names administrators' code uses otherwise, and their values for us."""

    # JupyterHub 5 stores any JSON of a REST body and passes it to the spawner on every later page,
    # where it must not break the creation of a spawner.
    user_options = AnyTrait(
        help="Options as sent; untrusted until gpuspawner.offers.user_options reads them"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        connection.make(self, super().__init__, *args, **kwargs)
        _take_charge(self)
        administrators_form.renew(self, self.gpuspawner_gates.sources.default_form)

    @classmethod
    def section_names(cls) -> list[str]:
        """Return each section once, although a class that `in_front_of` makes has another's name.

        Else traitlets merges what the section adds to a list into itself, so for each spawner that
        is made, the list in the configuration becomes twice as long.
        """
        last_counts = dict.fromkeys(reversed(super().section_names()))
        return [*reversed(last_counts)]

    def gpuspawner_copy(self) -> "GPUSpawner":
        """Return a copy whose traits can change without changing this spawner's."""
        copied = copy_of(self)
        _take_charge(copied)
        return copied

    @validate("user_options")
    def _gpuspawner_keep_what_can_be_read(self, proposal: Bunch) -> object:
        """Replace options that are too deep or too large: the hub writes them into its answers."""
        return request_options.readable(proposal.value)

    @default("user_options")
    def _gpuspawner_no_options(self) -> dict[str, object]:
        return {}

    @default("apply_user_options")
    def _gpuspawner_nothing_to_apply(self) -> Any:
        return default_of(super(), self, "apply_user_options") or hooks.apply_nothing

    @default("options_form")
    def _options_form_default(self) -> Any:
        if not hasattr(self, "gpuspawner_gates"):
            return default_of(super(), self, "options_form") or NONE_YET
        return self.gpuspawner_gates.sources.default_form()

    def _render_options_form(self, profile_list: Any) -> Any:
        # Somebody's own choice of profiles is drawn as it is: ours would show those left out.
        is_whole = as_list(profile_list) == as_list(self.profile_list)
        return PLACE if is_whole else super()._render_options_form(profile_list)

    async def _render_options_form_dynamically(self, current_spawner: Any) -> Any:
        if others_have(self, (DRAWING_LATE,)):
            return await super()._render_options_form_dynamically(current_spawner)
        return PLACE

    @default("options_from_form")
    def _options_from_form_default(self) -> Any:
        return FormReader(lambda: self.gpuspawner_gates.sources.current)

    async def get_options_form(self) -> Any:
        """Return the administrator's form, with our fields in their place."""
        return await self.gpuspawner_gates.sources.fill(await super().get_options_form())

    def run_options_from_form(self, form_data: dict[str, list[object]]) -> Any:
        """Run gate 1 for a form."""
        return self.gpuspawner_gates.form.check(form_data)

    def options_from_query(self, query_data: dict[str, list[str]]) -> Any:
        """Run gate 1 for a query."""
        return self.gpuspawner_gates.form.check_query(query_data)

    async def run_auth_state_hook(self, auth_state: Any) -> None:
        """Run the administrator's hook, and note it if a start begins."""
        await super().run_auth_state_hook(auth_state)
        self.gpuspawner_gates.sources.knows_auth_state = True
        self.gpuspawner_gates.server_state.begin()

    def run_pre_spawn_hook(self) -> Any:
        """Run gate 2, then the administrator's hook."""
        return self.gpuspawner_gates.begin()

    async def load_user_options(self) -> None:
        """Load the chosen profile."""
        await self.gpuspawner_gates.load_user_options()

    def _validate_user_options(self, profile_list: Any) -> None:
        if not profile_list:
            self.gpuspawner_stock.validate_user_options([])
            return
        from gpuspawner.profiles import profile_options  # only hubs with profiles load it

        profile_options.validate_user_options(self, self.gpuspawner_stock, profile_list)

    def _apply_overrides(self, spawner_override: dict[str, Any]) -> None:
        hooks.apply_overrides(self.gpuspawner_stock, spawner_override)

    async def get_pod_manifest(self) -> Any:
        """Return KubeSpawner's pod with this start's grant applied."""
        return await self.gpuspawner_gates.pod_manifest()

    async def _make_create_pod_request(self, pod: Any, request_timeout: float) -> bool:
        return await self.gpuspawner_gates.create_pod(pod, request_timeout)

    async def _make_create_pvc_request(self, pvc: Any, request_timeout: float) -> Any:
        return await self.gpuspawner_gates.create_home(pvc, request_timeout)

    async def _make_delete_pod_request(
        self, pod_name: str, delete_options: Any, grace_seconds: int, request_timeout: float
    ) -> Any:
        if pod_name != self.pod_name:  # KubeSpawner deletes no other, but a class of others may
            return await super()._make_delete_pod_request(
                pod_name, delete_options, grace_seconds, request_timeout
            )
        return await self.gpuspawner_gates.delete_pod(delete_options, grace_seconds)

    async def _start_reflector(self, kind: str, reflector_class: Any, **kwargs: Any) -> Any:
        return await self.gpuspawner_gates.start_reflector(kind, reflector_class, **kwargs)

    def start(self) -> Any:
        """Start as KubeSpawner does."""
        return self.gpuspawner_gates.start()

    async def _start(self) -> Any:
        return await self.gpuspawner_gates.run_start()

    async def stop(self, now: bool = False) -> None:
        """Stop as KubeSpawner does."""
        await self.gpuspawner_gates.stop(now)

    async def poll(self) -> int | None:
        """Poll as KubeSpawner does."""
        return await self.gpuspawner_gates.poll()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Yield how far this start is, unless the administrator's class does."""
        async for event in self.gpuspawner_gates.progress():
            yield event

    def start_polling(self) -> None:
        """Poll from now on: the hub takes the server as up."""
        self.gpuspawner_gates.server_state.answers()
        super().start_polling()

    def get_state(self) -> dict[str, Any]:
        """Return what the hub stores: KubeSpawner's state, and how the last server ended.

        A class of the administrator's may know its own part only after its ``start``. But a start
        is stored when it begins, and when it is refused before that method runs.
        """
        try:
            known = super().get_state()
        except Exception as error:  # noqa: BLE001, else the hub could never start the server again
            known = {}
            told = "Can't store the state of %s, because its class can't tell it: %r"
            self.log.warning(told, log_name(self), error)
        return self.gpuspawner_gates.server_state.stored(until_looked_for(self, known))

    def load_state(self, state: dict[str, Any]) -> None:
        """Load what the hub has stored; other classes see only what they have told."""
        super().load_state(without_ours(state))
        self.gpuspawner_gates.server_state.load(state)

    def clear_state(self) -> None:
        """Forget the start that has ended."""
        self.gpuspawner_gates.clear()


def _take_charge(spawner: GPUSpawner) -> None:
    """Put the gates in front of a spawner's KubeSpawner methods."""
    spawner.gpuspawner_stock = Stock(super(GPUSpawner, spawner), spawner)
    spawner.gpuspawner_gates = Gates(spawner)


_OURS = frozenset(dir(GPUSpawner)) - frozenset(dir(KubeSpawner))
"""The names that only GPUSpawner has; another meaning of one of them would break a gate."""


def in_front_of(given: object) -> type[GPUSpawner]:
    """Return the spawner class for a ``JupyterHub.spawner_class`` that an administrator has set.

    Raises:
        SpawnerClassError: It isn't a KubeSpawner, or can't have gates; says which line to change.
    """
    if isinstance(given, LazyConfigValue):
        return GPUSpawner
    if isinstance(given, str) and given.lower() in {"gpuspawner", "kubespawner"}:
        return GPUSpawner
    found = spawner_class.imported(given)
    if issubclass(found, GPUSpawner):
        return found
    return GPUSpawner if found is KubeSpawner else _child(found)  # type: ignore[arg-type]


@cache
def _child(theirs: type[Any]) -> type[GPUSpawner]:
    """Derive a class that has the same name, so that its sections of the configuration stay."""
    spawner_class.check(theirs, _OURS)
    reads_options = any(mentions(it, "user_options") for it in spawner_class.own_classes(theirs))
    body = {
        "__module__": theirs.__module__,
        "__doc__": theirs.__doc__,
        "gpuspawner_has_own_options": reads_options,
    }
    try:
        child = new_class(theirs.__name__, (GPUSpawner, theirs), {}, lambda it: it.update(body))
    except TypeError as error:
        raise spawner_class.SpawnerClassError(
            f"JupyterHub.spawner_class: {theirs.__name__} can't be combined with GPUSpawner "
            f"({error}); derive it from gpuspawner.GPUSpawner instead of KubeSpawner"
        ) from error
    get_logger().info(
        "GPUSpawner checks each start before %s, which keeps its own methods", theirs.__name__
    )
    return child
