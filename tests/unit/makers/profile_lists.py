"""Examples of ``profile_list``."""

from typing import Any

from gpuspawner.profiles.profile_list import read

CPU: dict[str, Any] = {"display_name": "CPU only", "description": "For <i>courses</i>"}
GPU: dict[str, Any] = {
    "display_name": "<b>GPU</b> server",
    "slug": "gpu",
    "kubespawner_override": {
        "extra_resource_limits": {"nvidia.com/gpu": "1"},
        "node_selector": {"gpu": "a100"},
    },
    "profile_options": {
        "gpus": {
            "display_name": "GPUs",
            "choices": {
                "one": {"display_name": "One", "default": True},
                "two": {
                    "display_name": "Two",
                    "kubespawner_override": {"extra_resource_limits": {"nvidia.com/gpu": "2"}},
                },
            },
        },
        "image": {
            "display_name": "Image",
            "choices": {
                "base": {"display_name": "Base", "kubespawner_override": {"image": "base:1"}},
                "torch": {"display_name": "Torch", "kubespawner_override": {"image": "torch:1"}},
            },
            "unlisted_choice": {
                "enabled": True,
                "display_name": "Another image",
                "validation_regex": "^quay.io/.+",
                "validation_message": "it must come from quay.io",
                "kubespawner_override": {"image": "{value}"},
            },
        },
    },
}

# A profile without images to choose from: users write in their own.
OWN_IMAGE: dict[str, Any] = {
    **GPU,
    "display_name": "Your image",
    "slug": "own",
    "profile_options": {
        "image": {
            "display_name": "Image",
            "unlisted_choice": {"enabled": True, "kubespawner_override": {"image": "{value}"}},
        }
    },
}

# As KubeSpawner completes them.
PROFILES = read([{**CPU, "slug": "cpu-only", "default": True}, GPU])
CPU_PROFILE, GPU_PROFILE = PROFILES
