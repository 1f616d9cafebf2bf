"""A spawner's own part in its form: what it shows, and what it foretells while it is open."""

from dataclasses import replace
from functools import partial
from typing import Any

from gpuspawner import form, gates, hub, messages, options, policy
from gpuspawner.asking import Asking
from gpuspawner.availability import Availability
from gpuspawner.cluster.health import Live
from gpuspawner.config import OFF
from gpuspawner.messages import OnForm
from gpuspawner.offers import Offers
from gpuspawner.options import FieldError, GPURequest
from gpuspawner.policy import Denial
from gpuspawner.preflight.ask import Ask
from gpuspawner.preflight.decision import Decision, Start, UnknownRules
from gpuspawner.scheduling import ClusterState
from gpuspawner.web.addresses import live


class ShowsForm:
    """A mixin before KubeSpawner in a class's bases, for where accelerators are on offer."""

    async def accelerator_form(self) -> str:
        """The form, with what was chosen before: in this very request, or at the last start."""
        spawner: Any = self
        hub.speak(spawner)
        await spawner._runtime.view.first_list(gates.FORM_PATIENCE)  # noqa: SLF001, it is our own
        asking, rows = await self.survey()
        draft = hub.draft() or self._begun(asking.offers)
        return form.render(asking.offers, rows, draft.options, draft.told, live(self))

    def _begun(self, offers: Offers) -> hub.Draft:
        """What stands in a form that nobody has filled in yet."""
        spawner: Any = self
        _, gone = spawner.saved(offers)
        # Models that are discovered can be gone only where the cluster is in view.
        known = isinstance(spawner._runtime.view.health(), Live)  # noqa: SLF001, it is our own
        told = OnForm(messages.gone_from_form(gone)) if gone and known else None
        return hub.Draft(spawner.user_options, told)

    def cluster_state(self) -> ClusterState:
        """What is known of the cluster."""
        spawner: Any = self
        state: ClusterState = spawner._runtime.view.state  # noqa: SLF001, it is our own
        return state

    async def survey(self) -> tuple[Asking, tuple[Availability, ...]]:
        """How it stands with each accelerator, for this server's owner."""
        spawner: Any = self
        view = spawner._runtime.view  # noqa: SLF001, it is our own
        asking: Asking = await spawner._asking()  # noqa: SLF001, it is our own
        found = spawner._runtime.surveys  # noqa: SLF001, it is our own
        return asking, found.survey(view.health(), asking.offers, asking.stock, asking.rules)

    async def preview(
        self, raw: object, server_name: str
    ) -> tuple[Asking, Decision | Denial | tuple[FieldError, ...]]:
        """What a start with these options would be told now; nothing is logged, nothing is kept.

        Raises:
            TooManyDryRunsError: Too many ask right now.
        """
        spawner: Any = self
        asking: Asking = await spawner._asking()  # noqa: SLF001, it is our own
        ours, _ = gates.split(spawner, raw)
        request = options.parse(ours, asking.offers)
        if not isinstance(request, GPURequest):
            return asking, request
        grant = policy.decide(request, asking.person, asking.offers)
        if isinstance(grant, Denial):
            return asking, grant
        if asking.variant(request) is None:  # the configuration stands in the way
            return asking, Denial(policy.DenialReason.NOT_OFFERED, request)
        ask = spawner._ask(asking, grant)  # noqa: SLF001, it is our own
        if server_name != spawner.name:  # it has no pod yet; this spawner's pod is another server's
            ask = replace(ask, name=f"{ask.name}-")  # a name that no pod can have
        if spawner.preflight == OFF:
            return asking, Start(grant, (UnknownRules(("GPUSpawner.preflight is off",)),))
        return asking, await gates.judged(spawner, ask, self._foretell)

    async def _foretell(self, ask: Ask) -> Decision:
        spawner: Any = self
        runtime = spawner._runtime  # noqa: SLF001, it is our own
        admit = partial(runtime.dry_runs.for_form, spawner.user.name, ask.namespace)
        decision: Decision = await runtime.preflight.foretell(replace(ask, admit=admit))
        return decision
