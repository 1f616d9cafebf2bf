"""A spawner's own part in profiles: where KubeSpawner asks for its form, and loads a profile."""

from asyncio import Future
from typing import Any

from tornado import web

from gpuspawner import gates, hub
from gpuspawner.admission.dry_runs import DryRuns
from gpuspawner.admission.rejection import Rejection
from gpuspawner.pods import Plain
from gpuspawner.profiles.choosing import check_written
from gpuspawner.profiles.profiles import Profiles
from gpuspawner.profiles.reading import read, without_patterns
from gpuspawner.profiles.trial import Listing, copy_of, listing


class ChoosesProfiles:
    """A mixin before KubeSpawner in a class's bases, for where ``profile_list`` is set."""

    _unloaded: Any = None

    async def profile_form(self) -> str:
        """KubeSpawner's form for the administrator's profiles, told with how it stands."""
        spawner: Any = self
        hub.speak(spawner)
        await spawner._runtime.view.first_list(gates.FORM_PATIENCE)  # noqa: SLF001, it is our own
        # A start that was refused in this very request may have loaded a profile already.
        profiles = await ChoosesProfiles.profiles(self._unloaded or self)
        return await profiles.form(hub.draft(), spawner.user_options) if profiles else ""

    async def profiles(self, listed: Listing | None = None) -> Profiles | None:
        """The administrator's profiles; None where the offers are gpuspawner's.

        Args:
            listed: Kept by a gate that may be begun twice; a new one if left out.

        Raises:
            HTTPError: They cannot be had.
        """
        spawner: Any = self
        if not spawner.profile_list:
            return None
        runtime = spawner._runtime  # noqa: SLF001, it is our own
        listed = listed or listing(spawner)
        return await Profiles.of(spawner, listed, runtime.view, runtime.preflight)

    async def dry_run_for_page(self, namespace: str, pod: Plain) -> Plain | Rejection | None:
        """What admission would make of a pod that is only shown.

        Raises:
            TooManyDryRunsError: Too many ask right now.
        """
        spawner: Any = self
        if not spawner.connect():
            return None
        runs: DryRuns = spawner._runtime.dry_runs  # noqa: SLF001, it is our own
        return await runs.for_page(spawner.user.name, namespace, pod)

    def copied(self) -> Any:
        """A copy on which a profile can be tried."""
        copied = copy_of(self)
        copied._underway = None  # noqa: SLF001, it is our own
        return copied

    def keep_unloaded(self) -> None:
        """Keep what this spawner is before a profile is loaded into it, until it has started."""
        spawner: Any = self
        self._unloaded = self.copied() if spawner.profile_list else None

    def forget_unloaded(self, started: Future[object]) -> None:
        """Forget it when *started* is done; a form is drawn again only after one that failed."""
        if not started.cancelled() and started.exception() is None:
            self._unloaded = None

    def _validate_user_options(self, profile_list: Any) -> None:
        """Validate as KubeSpawner does, but match what is written in within bounded time.

        Raises:
            ValueError: KubeSpawner could not load it.
        """
        listed = without_patterns(profile_list or [])
        super()._validate_user_options(listed)  # type: ignore[misc]
        spawner: Any = self
        if spawner.user_options:
            check_written(spawner.user_options, read(profile_list or []))

    async def load_user_options(self) -> None:
        """Load the profile that was chosen; what cannot be loaded now is no fault of the person.

        Raises:
            HTTPError: It cannot be loaded.
        """
        spawner: Any = self
        try:
            await super().load_user_options()  # type: ignore[misc]
        except web.HTTPError:
            raise
        except Exception as error:
            if spawner._underway is None:  # noqa: SLF001, a copy on which a profile is tried
                raise
            spawner.log.exception("The profile of %s cannot be loaded", hub.log_name(spawner))
            raise gates.misconfigured(spawner, f"KubeSpawner.profile_list: {error!r}") from error
