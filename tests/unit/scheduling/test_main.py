import json

import pytest

from gpuspawner.scheduling.__main__ import main
from tests.unit.makers.objects import node, pod

ONE = {"gpu": "1"}


@pytest.fixture
def write(tmp_path):
    def file(name, plain):
        path = tmp_path / name
        path.write_text(plain if isinstance(plain, str) else json.dumps(plain))
        return str(path)

    return file


@pytest.fixture
def files(write):
    return [
        write("nodes.json", {"kind": "List", "items": [node("a", gpu="1"), node("b")]}),
        write("pods.json", {"kind": "List", "items": []}),
    ]


def test_the_output_names_the_nodes_where_a_pod_fits(files, write, capsys):
    assert main([*files, write("pod.json", pod(requests=ONE))]) == 0
    out = capsys.readouterr().out
    assert "outcome: fits\nfeasible: a\n" in out
    assert "b: Insufficient nvidia.com/gpu" in out


def test_a_refusal_ends_with_the_schedulers_message(files, write, capsys):
    nothing = write("none.json", {"items": []})
    asks = write("pod.json", pod(requests={"gpu": "2"}))
    assert main([*files, asks, "--deviceClasses", nothing]) == 1
    assert (
        capsys.readouterr()
        .out.splitlines()[-1]
        .startswith("0/2 nodes are available: 2 Insufficient nvidia.com/gpu.")
    )


def test_the_output_says_why_the_verdict_is_unknown(files, write, capsys):
    assert main([*files, write("pod.json", pod(schedulerName="volcano"))]) == 2
    assert "unknown: another scheduler places the pod: volcano" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", "5", '{"items": 3}', '{"items": [3]}'])
def test_the_error_for_a_malformed_file_names_the_file(files, write, capsys, text):
    assert main([*files, write("pod.json", text)]) == 3
    assert "pod.json" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [[], ["--nodes"], ["--deviceClasses"]], ids=" ".join)
def test_wrong_arguments_do_not_look_like_an_unknown_verdict(files, capsys, wrong):
    with pytest.raises(SystemExit) as ended:
        main([*files, *wrong])
    assert ended.value.code == 3
    assert "error: " in capsys.readouterr().err


def test_more_than_one_pod_to_place_is_an_error(files, write, capsys):
    assert main([*files, write("pod.json", {"items": [pod(), pod()]})]) == 3
    assert "expected one pod, found 2" in capsys.readouterr().err
