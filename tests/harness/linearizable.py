"""Whether what clients saw can be explained by one order of their calls.

A history is a list of calls of several clients, each with the moments when it was sent and
answered. It is linearizable if the calls can be put in an order that a single object would have
answered likewise, and in which none stands before another that was answered before it was sent
(Herlihy and Wing, 1990). The search is Wing's and Gong's with Lowe's memory of what was tried. A
call whose answer never came, or is in doubt, may stand anywhere after it was sent, or nowhere.
"""

import threading
import time
from dataclasses import dataclass, field

NEVER = float("inf")


@dataclass(frozen=True)
class Call:
    """One call: what was asked, what was answered, and when."""

    what: tuple
    answer: object
    sent: float
    answered: float = NEVER


@dataclass
class History:
    """Calls of several clients, recorded as they happen."""

    calls: list = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, what, ask):
        """Asks, and records what was answered. `None` as an answer means that it is in doubt."""
        sent = time.monotonic()
        answer = ask()
        answered = NEVER if answer is None else time.monotonic()
        with self._lock:
            self.calls.append(Call(what, answer, sent, answered))
        return answer


def explain(calls, start, step):
    """An order of the calls that explains them, or `None` if there is none.

    `step(state, what, answer)` gives the state after a call, or `None` if the state would have
    answered otherwise; it takes `None` for an answer that is not known. States are hashable.
    """
    calls = sorted(calls, key=lambda call: call.sent)
    known = frozenset(i for i, call in enumerate(calls) if call.answered != NEVER)
    seen = set()
    # Each entry: what is still to be placed, the state, and the order so far as a chain.
    stack = [(frozenset(range(len(calls))), start, None)]
    while stack:
        left, state, order = stack.pop()
        if not left & known:
            return list(reversed([calls[i] for i in chain(order)]))
        if (left, state) in seen:
            continue
        seen.add((left, state))
        # Whatever was sent before the first of the others was answered may come next.
        until = min(calls[i].answered for i in left)
        for i in sorted(left, reverse=True):
            call = calls[i]
            if call.sent > until:
                continue
            after = step(state, call.what, call.answer)
            if after is not None:
                stack.append((left - {i}, after, (i, order)))
    return None


def chain(order):
    while order is not None:
        index, order = order
        yield index


def least_unexplained(calls, start, step):
    """The shortest beginning of a history that has no explanation, for a failure to print."""
    calls = sorted(calls, key=lambda call: call.answered)
    for last in calls:
        cut = last.answered
        # What had not been answered by then is not known yet.
        begun = [
            call if call.answered <= cut else Call(call.what, None, call.sent)
            for call in calls
            if call.sent <= cut
        ]
        if explain(begun, start, step) is None:
            return begun
    return None
