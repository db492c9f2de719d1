"""Many states at once, some side by side; what is wrong with any is kept and told."""

import shutil
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SIDE_BY_SIDE = 4

FAILURES_MAX = 12
"""After so many states that went wrong, nothing is learned from more."""


KNOWN = []
"""What goes wrong, as is known, and waits to be mended. It may only shrink."""


class Survey:
    """Looks at states, and counts them."""

    def __init__(self, folder, title):
        self.folder = folder
        self.title = title
        self.pool = ThreadPoolExecutor(SIDE_BY_SIDE)
        self.room = threading.Semaphore(2 * SIDE_BY_SIDE)
        self.futures = []
        self.states = self.known = 0
        self.failures = []

    def add(self, told, look):
        """Has `look(folder)` called: what is wrong, and how many states that was."""
        if len(self.failures) >= FAILURES_MAX:
            return
        self.room.acquire()
        self.futures.append(self.pool.submit(self._look, told, look))

    def _look(self, told, look):
        folder = Path(tempfile.mkdtemp(prefix="s", dir=self.folder))
        try:
            wrong, count = look(folder)
            self.states += count
            if wrong and self._is_known(wrong[0]):
                self.known += 1
            elif wrong:
                self.failures.append(self._keep(told, wrong, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            self.room.release()

    def _is_known(self, wrong):
        return any(scene in self.title and known in wrong for scene, known in KNOWN)

    def _keep(self, told, wrong, folder):
        kept = Path(tempfile.mkdtemp(prefix="coffer-power-kept-"))
        text = "\n".join([f"{self.title}: {told}", *wrong])
        (kept / "what.txt").write_text(text + "\n")
        for file in folder.iterdir():
            if file.is_file():
                shutil.copy(file, kept)
        return f"{text[:2000]}\n  kept in {kept}"

    def end(self):
        """Waits for all; how many states there were."""
        for future in self.futures:
            future.result()
        self.pool.shutdown()
        assert not self.failures, f"{len(self.failures)} went wrong:\n" + "\n\n".join(self.failures)
        return self.states
