"""The texts that are allowed, as regular expressions and in words.

The rules of Kubernetes are in k8s.io/apimachinery `pkg/util/validation` (v1.36). The grammar of an
image reference is that of github.com/distribution/reference (`reference.go`, v0.6), which container
runtimes use. The API server itself accepts almost any text, and the pod then waits.
"""

import re

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)"
_REGISTRY = rf"(?:(?:{_HOST}(?:\.{_HOST})*|\[[A-Fa-f0-9:]+\])(?::[0-9]+)?)"
_PART = r"(?:[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)"
_TAG = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})"
_ALGORITHM = r"(?:[A-Za-z][A-Za-z0-9]*(?:[_+.-][A-Za-z][A-Za-z0-9]*)*)"
_DIGEST = rf"(?:{_ALGORITHM}:[0-9A-Fa-f]{{32,128}})"

REFERENCE = rf"(?:{_REGISTRY}/)?{_PART}(?:/{_PART})*(?::{_TAG})?(?:@{_DIGEST})?"
"""A regular expression that matches a whole reference."""

LONGEST = 500
"""In characters: a name of 255, a tag of 128, and a digest."""

_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_DOMAIN = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"

VISIBLE = r"\S"
KEY = rf"^{_NAME}\Z"
IMAGE = rf"^(?=.{{1,{LONGEST}}}\Z){REFERENCE}\Z"
LABEL_KEY = rf"^((?=[^/]{{1,253}}/){_DOMAIN}/)?{_NAME}\Z"
LABEL_VALUE = rf"^({_NAME})?\Z"
OBJECT_NAME = rf"^(?=.{{1,253}}\Z){_DOMAIN}\Z"
VOLUME_NAME = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z"
PROMETHEUS_LABEL = r"^(?!__)[a-zA-Z_][a-zA-Z0-9_]*\Z"
VARIABLE = r"^[-._A-Za-z][-._A-Za-z0-9]*\Z"
MOUNT_PATH = r"^/[^:]*\Z"
OPERATOR = r"^(In|NotIn|Exists|DoesNotExist|Gt|Lt)\Z"
FIELD = r"^metadata\.name\Z"
OPERATOR_ON_FIELD = r"^(In|NotIn)\Z"
OPERATOR_ON_TAINT = r"^(Equal|Exists)\Z"
EFFECT = r"^(NoSchedule|PreferNoSchedule|NoExecute)\Z"

RESOURCE = rf"^(?!requests\.)(?=[^/]{{1,244}}/|[^/]{{0,240}}kubernetes\.io/){_DOMAIN}/{_NAME}\Z"
"""The name of an extended resource, which a quota can name with `requests.` before it, or of a
resource in Kubernetes' own domain, which old device plugins use: `validateContainerResourceName`
and `IsExtendedResourceName` of k8s.io/kubernetes `pkg/apis/core` (v1.36)."""

WORDS = {
    VISIBLE: "is empty; write a text or leave it out",
    KEY: "cannot be a key; use up to 63 letters, digits, '-', '_' and '.', "
    "a letter or digit first and last",
    IMAGE: "is not an image reference, such as quay.io/jupyter/lab:2026-10-05",
    RESOURCE: "is not the name of an extended resource, such as nvidia.com/gpu",
    LABEL_KEY: "is not the key of a label, such as nvidia.com/gpu.product",
    LABEL_VALUE: "cannot be a label's value; up to 63 letters, digits, '-', '_' and '.', "
    "a letter or digit first and last",
    OBJECT_NAME: "is not a name in Kubernetes; use small letters, digits, '-' and '.', "
    "a letter or digit first and last",
    VOLUME_NAME: "is not a volume's name; up to 63 small letters, digits and '-', "
    "a letter or digit first and last",
    PROMETHEUS_LABEL: "is not the name of a label in Prometheus, such as cluster",
    VARIABLE: "is not a name of an environment variable; use letters, digits, '_', '-' and '.', "
    "and no digit first",
    MOUNT_PATH: "is not an absolute path without ':'",
    OPERATOR: "is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
    FIELD: "is not metadata.name, the only field that can be matched",
    OPERATOR_ON_FIELD: "is not one of In, NotIn",
    OPERATOR_ON_TAINT: "is not one of Equal, Exists",
    EFFECT: "is not one of NoSchedule, PreferNoSchedule, NoExecute",
}
"""The error for a text that doesn't match the expression."""

_REFERENCE = re.compile(REFERENCE)


def is_reference(text: str) -> bool:
    """Whether a container runtime accepts a text as an image reference."""
    return len(text) <= LONGEST and _REFERENCE.fullmatch(text) is not None


def whole(expression: str) -> str:
    """Return an expression that finds a text only if `expression` matches all of it.

    It means the same in Python and in ECMAScript, which JSON Schema uses. In Python, a ``$`` alone
    also matches before a final line break.
    """
    return rf"^(?:{expression})$(?!\n)"
