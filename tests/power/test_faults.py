"""Calls of the server fail, one to six in a row: it answers truthfully, keeps what it acknowledged,
has nothing of what it refused for certain, and goes on when the fault is gone."""

import errno

import pytest

from harness.power.faults import Sweep, seeded
from harness.power.preload import KINDS
from harness.power.scenes import SCENES
from harness.power.survey import Survey
from harness.power.world import World, copy_tree

QUICK = [name for name, scene in SCENES.items() if not scene.is_long and name != "tidying"]


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", QUICK)
def test_faults(name, bench, seed, tally, request, capsys):
    scene, (folder, bases) = SCENES[name], bench
    states = request.config.getoption("--power-states") or 100
    place = folder / f"faults-{name.replace(' ', '-')}"
    place.mkdir()
    sweep, chance = Sweep(scene, bases[scene.base], place), seeded(seed, name)
    survey = Survey(folder, f"{name}, seed {seed}")
    for number in range(states // len(QUICK) // 2 + 1):
        fault = sweep.choose(chance)

        def look(folder, fault=fault, number=number):
            return sweep.check(folder, fault, seeded(seed, name, number))

        survey.add(str(fault), look)
    looked = survey.end()
    tally.update({"states after faults": looked, "known failures": survey.known})
    tally.update({"faults": states // len(QUICK) // 2 + 1})
    with capsys.disabled():
        print(f"\n{name}: {looked} states after faults, seed {seed}")


@pytest.mark.timeout(600)
def test_what_was_done_is_told_so_where_its_end_could_not_be_recorded(bench):
    folder, bases = bench
    base, ledger = bases["rest"]
    root = folder / "audit-log-full" / "world"
    root.parent.mkdir()
    copy_tree(base, root)
    world = World(root, ledger.copy(), recorded=True).start()
    try:
        # The first writes to the log are of that it begins, a later one of that it is done.
        for first in range(6):
            world.running.arm(KINDS["write"], first, 1 << 40, errno.ENOSPC, "/audit/")
            status, headers, told = world.client.s3("PUT", f"/recorded-{first}")
            world.running.arm(0, 0, 0, 0)
            if status == 500:
                break
            assert status in (200, 503), (first, status, told)
        assert status == 500 and b"This was done" in told, (status, told)
        assert headers["x-coffer-outcome"] == "done", headers
        assert world.client.s3("HEAD", f"/recorded-{first}")[0] == 200
    finally:
        world.close()
