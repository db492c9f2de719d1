"""Debian's Chromium without a window, told what to do over a pipe (the DevTools protocol)."""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PATIENCE_SECONDS = 60


class Browser:
    """One page of one size, light or dark."""

    def __init__(self, folder):
        program = shutil.which("chromium") or shutil.which("chromium-browser")
        assert program, "scripts/install-test-tools installs Debian's chromium"
        from_here, self._to = os.pipe()
        self._from, to_here = os.pipe()
        # It reads from descriptor 3 and writes to 4.
        self.process = subprocess.Popen(
            [
                *("bash", "-c", f'exec "$0" "$@" 3<&{from_here} 4>&{to_here}', program),
                *("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"),
                *("--hide-scrollbars", f"--user-data-dir={folder / 'profile'}", "about:blank"),
            ],
            pass_fds=(from_here, to_here),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"HOME": str(folder)},
        )
        os.close(from_here)
        os.close(to_here)
        self._number, self._rest, self._session = 0, b"", None
        self._events = set()
        pages = self.ask("Target.getTargets")["targetInfos"]
        page = next(one for one in pages if one["type"] == "page")
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        self.ask("Page.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._to)
        os.close(self._from)
        self.process.terminate()
        self.process.wait(PATIENCE_SECONDS)

    def _message(self, end):
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            assert ready, "chromium does not answer"
            read = os.read(self._from, 1 << 20)
            assert read, "chromium ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        return json.loads(message)

    def ask(self, method, **parameters):
        """The result of one command."""
        self._number += 1
        command = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        rest = json.dumps(command).encode() + b"\0"
        while rest:
            rest = rest[os.write(self._to, rest) :]
        end = time.monotonic() + PATIENCE_SECONDS
        while (message := self._message(end)).get("id") != self._number:
            self._events.add(message.get("method"))
        assert "error" not in message, f"{method}: {message['error']}"
        return message["result"]

    def open(self, url, width, height, scheme):
        """Shows a page, and waits until it is there."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            **{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.ask("Emulation.setEmulatedMedia", features=features)
        self._events.discard("Page.loadEventFired")
        self.ask("Page.navigate", url=url)
        end = time.monotonic() + PATIENCE_SECONDS
        while "Page.loadEventFired" not in self._events:
            self._events.add(self._message(end).get("method"))

    def run(self, script):
        """What an expression in the page gives."""
        told = self.ask(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)

    def point(self, x, y):
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, width, height):
        """A PNG of the upper left corner of the page."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.ask("Page.captureScreenshot", clip=clip)
        return base64.b64decode(taken["data"])
