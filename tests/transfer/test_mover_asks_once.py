"""coffer put -r asks once what a bucket allows, however many files begin together."""

import time
from http.server import BaseHTTPRequestHandler

from harness.mover import Mover, answering


class Bucket(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.server.asked.append(self.path)
        time.sleep(0.3)
        self.answer(self.server.status)

    def do_PUT(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.answer(200, self.headers["x-amz-checksum-crc64nvme"])

    def answer(self, status, checksum=None):
        self.send_response(status)
        self.send_header("etag", '"e"')
        if checksum:
            self.send_header("x-amz-checksum-crc64nvme", checksum)
        self.send_header("content-length", "0")
        self.end_headers()


def test_a_bucket_is_asked_about_once(tmp_path):
    for status in (200, 403):
        with answering(Bucket, asked=[], status=status) as service:
            mover = Mover.elsewhere(service, tmp_path / f"home-{status}")
            (mover.home / "files").mkdir()
            for number in range(8):
                (mover.home / f"files/{number}").write_text(str(number))
            mover.run("put", "-r", "files", "s3://bucket/to/", "--jobs", "8")
            assert service.asked.count("/bucket") == 1, (status, service.asked)
