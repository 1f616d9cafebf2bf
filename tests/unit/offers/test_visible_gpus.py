"""The check of a server's GPUs, as it runs in the image: without gpuspawner and nvidia-ml-py."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

from gpuspawner.offers import visible_gpus
from gpuspawner.offers.gpu_check import with_gpu_check
from gpuspawner.offers.visible_gpus import FEWER
from localcluster import nvml_stub
from localcluster.nvml_stub import Gpu

T4 = Gpu("Tesla T4", "GPU-1", 15 * 2**30)
A100 = Gpu("NVIDIA A100-SXM4-40GB", "GPU-2", 40 * 2**30)
SLICE = Gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "MIG-1", 5 * 2**30)


def command(limits, model="", shared=()):
    server = {"name": "notebook", "resources": {"limits": limits}}
    selector = {"nvidia.com/gpu.product": model} if model else {}
    pod = {"spec": {"nodeSelector": selector, "containers": [server]}}
    [check] = with_gpu_check(pod, shared)["spec"]["initContainers"]
    return check["command"]


def run(words, *gpus, **variables):
    """Run the command on a machine with these GPUs; return its status and what it prints."""
    python = Path(sys.executable).parent
    own = {"PATH": f"{python}{os.pathsep}{os.environ['PATH']}", **variables}
    environment = {**nvml_stub.environment(nvml_stub.build(), gpus, own), **own}
    environment["LD_LIBRARY_PATH"] = str(nvml_stub.build())
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("gpus", "status", "said"),
    [
        ((T4, T4), 0, "2 of 2 GPUs visible: Tesla T4, Tesla T4"),
        ((T4, T4, T4), 0, "3 of 2 GPUs visible: Tesla T4, Tesla T4, Tesla T4"),
        ((T4,), FEWER, "1 of 2 GPUs visible: Tesla T4"),
        ((), FEWER, "0 of 2 GPUs visible: none"),
    ],
)
def test_it_fails_if_fewer_gpus_are_visible_than_granted(gpus, status, said):
    found = run(command({"nvidia.com/gpu": "2", "memory": "1Gi"}), *gpus)

    assert found == (status, f"gpuspawner: {said}")


@pytest.mark.parametrize(
    ("model", "status"),
    [("Tesla-T4", 0), ("Tesla-T4-SHARED", 0), ("NVIDIA-L4", FEWER)],
)
def test_gpus_of_another_model_than_the_node_s_label_do_not_count(model, status):
    assert run(command({"nvidia.com/gpu": "1"}, model), T4)[0] == status


@pytest.mark.parametrize(
    ("limits", "model"),
    [
        ({"nvidia.com/mig-1g.5gb": "2"}, "NVIDIA-A100-SXM4-40GB"),
        ({"nvidia.com/gpu": "2"}, "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb"),
    ],
)
def test_slices_count_and_not_their_gpu(limits, model):
    def cut(slices):
        return Gpu(A100.name, A100.uuid, A100.memory, slices=(SLICE,) * slices)

    assert run(command(limits, model), cut(2))[0] == 0
    assert run(command(limits, model), cut(1))[0] == FEWER


@pytest.mark.parametrize("resource", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_two_shares_may_be_of_one_gpu(resource):
    words = command({resource: "2"}, shared=("nvidia.com/gpu",))

    assert run(words, T4) == (0, "gpuspawner: 1 of 2 GPUs visible: Tesla T4")
    assert run(words)[0] == FEWER


def test_an_error_of_nvml_means_that_no_gpu_is_visible():
    found = run(command({"nvidia.com/gpu": "1"}), T4, LOCALCLUSTER_NVML_ERROR="18")

    assert found == (FEWER, "gpuspawner: 0 of 1 GPUs visible: NVML error 18")


def test_nobody_checks_without_python(tmp_path):
    found = run(["/bin/sh", *command({"nvidia.com/gpu": "1"})[1:]], PATH=str(tmp_path))

    assert found == (0, "gpuspawner: no python3, so nobody checks")


def test_a_python_that_fails_does_not_keep_a_server_from_its_user(tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\nexit 1\n")
    broken.chmod(0o755)

    assert run(["/bin/sh", *command({"nvidia.com/gpu": "1"})[1:]], PATH=str(tmp_path)) == (0, "")


@pytest.mark.parametrize(
    ("device", "status", "said"),
    [
        ("nvidia0", 0, "nobody can tell which GPUs are visible: there is no libnvidia-ml.so.1,"),
        ("nvidiactl", FEWER, "0 of 1 GPUs visible: there is neither a driver nor a GPU"),
    ],
)
def test_without_nvml_it_fails_only_if_there_is_no_device_either(
    device, status, said, tmp_path, monkeypatch, capsys
):
    (tmp_path / device).touch()
    monkeypatch.setattr(visible_gpus, "LIBRARIES", ["libnothing.so.1"])
    monkeypatch.setattr(visible_gpus, "DEVICES", tmp_path)

    assert visible_gpus.check(1, 1, "") == status
    assert capsys.readouterr().out.startswith(f"gpuspawner: {said}")


def test_nvml_that_hangs_means_that_no_gpu_is_visible(monkeypatch, capsys):
    never = Event()
    monkeypatch.setattr(visible_gpus, "_seen", lambda _: (1, str(never.wait(60))))
    monkeypatch.setattr(visible_gpus, "SECONDS", 0.01)

    assert visible_gpus.check(1, 1, "") == FEWER
    never.set()
    assert capsys.readouterr().out == "gpuspawner: 0 of 1 GPUs visible: NVML doesn't answer\n"


def test_an_nvml_that_is_none_tells_nothing(monkeypatch, capsys):
    monkeypatch.setattr(visible_gpus, "_library", object)

    assert visible_gpus.check(1, 1, "") == 0
    assert "nobody can tell" in capsys.readouterr().out


def test_its_text_has_nothing_that_kubernetes_replaces():
    assert not [word for word in command({"nvidia.com/gpu": "1"}) if "$(" in word or "$$" in word]


def test_it_is_written_for_old_pythons():
    ast.parse(Path(visible_gpus.__file__).read_text(), feature_version=(3, 7))
