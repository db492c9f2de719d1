"""The power goes at any moment of any act: what was acknowledged stays, what was not is whole or
absent, and the server starts."""

import pickle
import random

import pytest

from harness.power import cuts
from harness.power.ledger import YES
from harness.power.scenes import SCENES
from harness.power.survey import Survey

AGAIN = 3
"""Cuts of one recovery."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SCENES)
def test_power_cuts(name, bench, seed, tally, request, capsys):
    scene, (folder, bases) = SCENES[name], bench
    states = request.config.getoption("--power-states")
    if scene.is_long and states is None:
        pytest.skip("is looked at by `make test-power`")
    count = (states or 184) // len(SCENES) + 1
    chance = random.Random(f"{seed} {name}")
    survey = Survey(folder, f"{name}, seed {seed}")
    place = folder / f"recording-{name.replace(' ', '-')}"
    place.mkdir()
    recording = cuts.record(name, scene, bases[scene.base], place)
    renames = recording.ledger.notes.get("renames", [])
    assert renames == ([YES] * 4 if name == "renames" else []), list(recording.ledger.answers())
    whole = cuts.cuts(pickle.loads(recording.before), recording.steps, chance, count)
    for number, cut in enumerate(whole):
        again = AGAIN if number % 8 == 7 else 0
        luck = random.Random(chance.randrange(1 << 32))

        def look(folder, cut=cut, again=again, luck=luck):
            return cuts.check(recording, cut, folder, again=again, chance=luck)

        survey.add(cut.told, look)
    looked = survey.end()
    tally.update({"states after power cuts": looked, "known failures": survey.known})
    tally.update({"acts recorded": len(recording.ledger.acts), "changes": len(recording.steps)})
    with capsys.disabled():
        print(f"\n{name}: {looked} states of {len(recording.steps)} steps, seed {seed}")
