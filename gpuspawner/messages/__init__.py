"""Turns decisions and facts into sentences for users and administrators.

Only sentences are here, and each is made once: what is so, why, and what somebody can have instead.
Names and texts of people and of the cluster are escaped here. Nothing here decides.

Begin with `refusals`, then `words`.
"""

from gpuspawner.messages.availability import choices_changed, login_ended, stale, state_text
from gpuspawner.messages.details import (
    said_before,
    said_first,
    with_details,
    with_details_in_log,
    with_line_page,
    with_way_back,
)
from gpuspawner.messages.endings import ends_in, last_server_ended, mishap, server_ended
from gpuspawner.messages.kueue import in_queue, waits_in_queue
from gpuspawner.messages.launching import (
    elsewhere,
    failure,
    hitch,
    last_start_failed,
    perhaps_the_same,
    step,
    still,
    unexplained,
)
from gpuspawner.messages.on_form import (
    OnForm,
    ProfileButton,
    button,
    correction,
    gone_at_start,
    gone_from_form,
    no_longer_offered,
    too_large,
    unreadable_body,
)
from gpuspawner.messages.refusals import (
    already_started,
    denied,
    misconfigured,
    profile_refused,
    profile_refused_above_buttons,
    refusal,
    unreachable,
)
from gpuspawner.messages.starts import ends_after, node_comes, node_still_comes, preview, progress
from gpuspawner.messages.words import (
    Message,
    about,
    device,
    in_language,
    no_download,
    profile_choice,
    profile_named,
)
