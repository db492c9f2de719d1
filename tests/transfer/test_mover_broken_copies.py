"""coffer cp of an object that is copied in parts, and does not come to its end: no upload stays."""

import signal
import time
from http.server import BaseHTTPRequestHandler

import pytest

from harness.mover import Mover, answering

REFUSED = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>"


class Copying(BaseHTTPRequestHandler):
    """Has an object of 6 GiB. Copies of its parts are refused, or wait, as its state says."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(200, "", length=6 << 30)

    def do_POST(self):
        assert self.path.endswith("?uploads=")
        self.answer(200, "<R><UploadId>u</UploadId></R>")

    def do_PUT(self):
        self.server.copied.append(self.path)
        if self.server.refuses:
            return self.answer(403, REFUSED)
        time.sleep(30)
        return None

    def do_DELETE(self):
        self.server.ended.append(self.path)
        if self.server.ending == "lost":
            self.close_connection = True
            return self.connection.close()
        if self.server.ending == "still":
            time.sleep(30)
        return self.answer(204, "")

    def answer(self, status, body, length=None):
        self.send_response(status)
        self.send_header("content-length", str(len(body) if length is None else length))
        self.send_header("etag", '"e"')
        self.end_headers()
        self.wfile.write(body.encode())


@pytest.mark.parametrize("ending", ["answered", "still", "lost"])
@pytest.mark.parametrize("end", ["refused", "SIGINT", "SIGTERM"])
def test_the_upload_of_a_copy_that_breaks_off_is_ended_or_told(tmp_path, end, ending):
    state = {"copied": [], "ended": [], "refuses": end == "refused", "ending": ending}
    with answering(Copying, **state) as service:
        mover = Mover.elsewhere(service, tmp_path / "home")
        copying = mover.start("cp", "s3://b/film", "s3://b/copy")
        while not service.copied:
            assert copying.poll() is None
            time.sleep(0.01)
        if end != "refused":
            copying.send_signal(signal.Signals[end])
        began = time.monotonic()
        _, told = copying.communicate(timeout=25)
        assert copying.returncode != 0
        assert time.monotonic() - began < 12
        assert set(service.ended) == {"/b/copy?uploadId=u"}
        left = b"an upload of s3://b/copy could not be ended" in told
        assert left == (ending != "answered"), told
        assert (b"--upload-id u`" in told) == left, told
