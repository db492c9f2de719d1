"""Calls of the server fail, one to six in a row: it answers truthfully, keeps what it acknowledged,
has nothing of what it refused for certain, and goes on when the fault is gone."""

import pytest

from harness.power.faults import Sweep, seeded
from harness.power.scenes import SCENES
from harness.power.survey import Survey

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
