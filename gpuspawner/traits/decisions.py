"""How the hub decides about a start, and in which language it answers."""

from gpuspawner.traits.trait_types import Dict, Enum, Float, List, Unicode, Union

ENFORCE, WARN, OFF = "enforce", "warn", "off"

preflight = Enum(
    [ENFORCE, WARN, OFF],
    ENFORCE,
    help="""
    Sets what the hub does when the cluster has no room for a server, and no node can come for it.

    ``"enforce"``, the default
        The server doesn't start, and its owner reads why, and what they can have instead.
    ``"warn"``
        The hub starts the server anyway. The refusal is a warning in the hub's log and a sentence
        on the progress page, so an administrator can watch the verdicts before they count.
    ``"off"``
        A server starts as with ``KubeSpawner``, without a check in the view of the cluster or a
        dry run by the API server. The form still shows what is free.

    In each case the hub refuses what the :attr:`policies` deny, a choice that isn't among the
    :attr:`offers <accelerators>`, and a pod or a home directory that the API server itself rejects:
    for example, because of a quota.

    .. versionadded:: 0.1
    """,
).tag(config=True)

autoscaling = Enum(
    ["detect", "none", "always"],
    "detect",
    help="""
    Sets whether nodes may be added for a server that no present node can hold.

    ``"detect"``, the default
        The hub reads Karpenter's NodePools and the status of Cluster Autoscaler, if it has these
        rights, and the nodes' labels and provider ids. If nobody knows whether a node can come, the
        hub creates the pod, and the autoscaler's answer decides. Without an answer in a minute, the
        hub refuses the start; see :attr:`trial_timeout`.
    ``"none"``
        No node is ever added, except to a pool with ``scale_up``.
    ``"always"``
        A node may always come, even if nothing in the cluster says so.

    .. versionadded:: 0.1
    """,
).tag(config=True)

trial_timeout = Float(
    60.0,
    min=1.0,
    max=1200.0,
    help="""
    Sets how long the hub waits for an autoscaler if nobody knows whether a node comes, in seconds.

    From 1 to 1200; by default 60. Without an answer of the autoscaler in this time, the hub refuses
    the start. If the hub reads Cluster Autoscaler's status, it waits until the autoscaler has
    looked, too. If it isn't allowed to read events, in which autoscalers answer, it waits as long
    as for a node that is known to come. The time begins once the pod's volumes are there.

    .. versionadded:: 0.1
    """,
).tag(config=True)

autoscaler_status = Unicode(
    "kube-system/cluster-autoscaler-status",
    help="""
    Names the ConfigMap to which Cluster Autoscaler writes its status, as ``namespace/name``.

    OpenShift's is in ``openshift-machine-api``; the autoscaler's Helm chart uses its own namespace.
    Grant the right to this ConfigMap, too: give ``gpuspawner rbac`` the same
    ``--autoscaler-status``.

    .. versionadded:: 0.1
    """,
).tag(config=True)

scheduler_version = Unicode(
    None,
    allow_none=True,
    help="""
    Sets the version of kube-scheduler, if it isn't the version of the API server.

    A version such as ``"1.36.2"``. By default it is that of the API server; if the user-scheduler
    of Zero to JupyterHub places the servers, it is the tag of its image. Versions differ in how
    they count the resources of a pod that Kubernetes resizes while it runs, for example. If the
    text isn't a version, the hub uses the rules of the newest version that it knows.

    .. versionadded:: 0.1
    """,
).tag(config=True)

default_filter_schedulers = List(
    Unicode(),
    help="""
    Names other schedulers that filter nodes by the rules of kube-scheduler's default profile.

    By default it is empty. The hub knows Kubernetes' own scheduler and the profiles that GKE and
    Gardener set at admission, and reads from the values of Zero to JupyterHub whether the chart's
    user-scheduler only ranks the nodes differently. The hub starts pods of all other schedulers
    without checking for room.

    .. versionadded:: 0.1
    """,
).tag(config=True)

language = Unicode(
    "",
    help="""
    Sets the language of the form and messages.

    A language tag, such as ``"zh-CN"``. By default it is the first language in the preferences of a
    user's browser that is English or has a compiled catalogue in ``gpuspawner/locale``; if there is
    none, English. The hub's own pages and logs stay in English; the log quotes refusals as users
    read them.

    .. versionadded:: 0.1
    """,
).tag(config=True)

messages_url = Union(
    [Unicode(), Dict(value_trait=Unicode(), key_trait=Unicode())],
    default_value="",
    help="""
    The address of a page that says what each message means.

    After a refusal, the form links to it, with the reason as anchor: ``messages_url#busy``. The
    page *What the messages mean for you* of gpuspawner's documentation has these anchors; a page of
    yours can have them, too. If there is none for a reason, such as a cause of a failed start,
    browsers show the top of the page. By default there is no link.

    If there are pages in several languages, it is a dictionary by language tag. If a user's
    language isn't in it, the form links to the page in English, if there is one::

        c.GPUSpawner.messages_url = {
            "en": "https://docs.example.org/users.html",
            "zh-CN": "https://docs.example.org/users.zh-CN.html",
        }

    .. versionadded:: 0.1
    """,
).tag(config=True)
