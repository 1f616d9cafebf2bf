"""What somebody asks about who starts no server."""

from types import SimpleNamespace

from gpuspawner.gates.what_if import asked_for


def test_the_name_that_messages_give_no_gpu_asks_for_a_server_without_one():
    sources = SimpleNamespace(accelerators=object())
    gates = SimpleNamespace(sources=sources)
    asking = SimpleNamespace(spawner=SimpleNamespace(gpuspawner_gates=gates))

    assert asked_for(asking, "null") == {"accelerator": None}
    assert asked_for(asking, "t4") == {"accelerator": "t4"}
