"""What was asked for and what was answered, and so what may be there after a power cut.

A *fact* is a tuple that names something, as `("object", bucket, name)`; what is there is its value,
`None` for nothing. An *act* changes facts. It is marked on the tape when it is begun, and when it
is answered: *yes*, *no* (nothing was done) or *in doubt*.
"""

import contextlib
import threading
from typing import NamedTuple

from .tape import MARK

YES, NO, DOUBT = "yes", "no", "doubt"


class Act(NamedTuple):
    """One thing that was asked for: what it makes of facts, all of them or none."""

    changes: dict
    # Whether an act that is in doubt may be done by halves: several acts in one request.
    apart: bool = False


class Ledger:
    """Facts that stand, and acts upon them, in the order in which they were begun."""

    def __init__(self, facts=None, notes=None):
        self.facts = dict(facts or {})
        # What tests need to know, such as secrets of access keys; it is no matter of power cuts.
        self.notes = dict(notes or {})
        self.acts = []
        self.marks = None
        self.log = []
        self.told = {}
        self.numbering = threading.Lock()

    def copy(self):
        return Ledger(self.facts, self.notes)

    @contextlib.contextmanager
    def trying(self, changes, apart=False):
        """Asks for something within; the answer is told to what this yields."""
        with self.numbering:
            number = len(self.acts)
            self.acts.append(Act(changes, apart))
        answer = Answer()
        self._mark(number, "begin")
        try:
            yield answer
        finally:
            if answer.more is not None:
                self.acts[number] = Act(changes | answer.more, apart)
            self.told[number] = answer.status
            self._mark(number, answer.outcome)

    def _mark(self, number, outcome):
        self.log.append((number, outcome))
        if self.marks:
            self.marks.write(number, outcome)

    def seal(self):
        """All that was said is a fact: for what is built on this."""
        state = self.standing(self.log)
        self.facts = {fact: values[0] for fact, values in state.items()}
        assert all(len(values) == 1 for values in state.values()), "in doubt"
        self.acts, self.log, self.marks = [], [], None
        return self

    def standing(self, marks):
        """Each fact's possible values after these marks, the certain one first."""
        possible = {fact: [value] for fact, value in self.facts.items()}
        open_acts = {}
        for number, outcome in marks:
            changes = self.acts[number].changes
            for fact, value in changes.items():
                values = possible.setdefault(fact, [None])
                if outcome == "begin":
                    values.append(value)
                    open_acts.setdefault(fact, []).append(number)
                elif outcome == YES:
                    possible[fact] = [value]
                    open_acts[fact] = []
                elif outcome == NO and number in open_acts.get(fact, []):
                    values.reverse()
                    values.remove(value)
                    values.reverse()
                    open_acts[fact].remove(number)
        return possible

    def answers(self):
        """How acts ended, for people."""
        for number, outcome in self.log:
            if outcome != "begin":
                facts = [" ".join(map(str, fact)) for fact in self.acts[number].changes]
                told = self.told.get(number, "")
                yield f"{number} {outcome} {told}: {', '.join(facts[:2])}"

    def halves(self, marks, found):
        """Acts that were begun, not settled, and done by halves."""
        last = {}
        for number, outcome in marks:
            for fact in self.acts[number].changes:
                last[fact] = (number, outcome)
        before = {fact: values[0] for fact, values in self.standing(marks).items()}
        for number, act in enumerate(self.acts):
            told = {}
            for fact, value in act.changes.items():
                is_last = last.get(fact) in ((number, "begin"), (number, DOUBT))
                if is_last and fact in found and before[fact] != value:
                    told[fact] = found[fact] == value
            if not act.apart and len(set(told.values())) > 1:
                yield act, told


class Answer:
    """How an act ended: in doubt unless it is told otherwise."""

    def __init__(self):
        self.outcome = DOUBT
        self.more = None
        self.status = ""

    def is_(self, outcome, **more):
        self.outcome = outcome
        self.more = more.get("more")
        return outcome


def marks_of(steps):
    """The marks on a tape."""
    return [(step.number, step.path) for step in steps if step.what == MARK]


def outcome_of(status):
    """What an HTTP status says: 507 and 503 promise that nothing was done."""
    if 200 <= status < 300:
        return YES
    if 400 <= status < 500 or status in (503, 507):
        return NO
    return DOUBT
