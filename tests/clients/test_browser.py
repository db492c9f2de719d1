"""A real browser: a page of another origin stores and reads objects, where the bucket lets it."""

import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import threading

import pytest

from harness.clients import s3_client
from harness.server import clean_environment

PAGE = """<!doctype html><meta charset="utf-8"><pre id="told"></pre><script>
const tasks = TASKS;
async function all() {
  const told = [];
  for (const {url, options, fields} of tasks) {
    try {
      if (fields) {
        options.body = new FormData();
        for (const [name, value] of Object.entries(fields)) options.body.append(name, value);
        options.body.append("file", new Blob(["chosen by a person"]), "chosen.txt");
      }
      const answer = await fetch(url, options);
      const text = await answer.text();
      told.push([answer.status, text.slice(0, 100), answer.headers.get("etag")]);
    } catch (error) {
      told.push(["refused", String(error), null]);
    }
  }
  document.getElementById("told").textContent = JSON.stringify(told);
}
all();
</script>"""


class Site:
    """A web server of another origin, with one page."""

    def __init__(self, folder):
        self.folder = folder
        quiet = type(
            "Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None}
        )
        handler = functools.partial(quiet, directory=folder)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def visit(self, browser, tasks):
        """What the page was told of each task: status, text, entity tag."""
        page = PAGE.replace("TASKS", json.dumps(tasks).replace("<", "\\u003c"))
        (self.folder / "page.html").write_text(page)
        command = [
            *(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"),
            # The authority is the test's own; what is tested is another matter.
            *("--ignore-certificate-errors", "--virtual-time-budget=20000"),
            *(f"--user-data-dir={self.folder / 'profile'}", f"{self.origin}/page.html"),
        ]
        environment = clean_environment() | {"HOME": str(self.folder)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        told = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
        assert told and told[1], done.stdout + done.stderr
        return json.loads(html.unescape(told[1]))


@pytest.mark.timeout(300)
def test_a_page_of_another_origin(server, tmp_path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    assert browser, "scripts/install-test-tools installs Debian's chromium"
    s3 = s3_client(server)
    for bucket in ("shared-with-a-page", "not-shared"):
        s3.create_bucket(Bucket=bucket)
        s3.put_object(Bucket=bucket, Key="there", Body=b"0123456789")

    def url(verb, bucket, key):
        where = {"Bucket": bucket, "Key": key}
        return s3.generate_presigned_url(verb, Params=where, HttpMethod=verb[:3].upper())

    with Site(tmp_path) as site:
        rule = {
            "AllowedOrigins": [site.origin],
            "AllowedMethods": ["GET", "PUT", "POST"],
            "AllowedHeaders": ["range", "content-type"],
            "ExposeHeaders": ["ETag"],
        }
        configuration = {"CORSRules": [rule]}
        s3.put_bucket_cors(Bucket="shared-with-a-page", CORSConfiguration=configuration)
        text = {"Content-Type": "text/plain"}
        form = s3.generate_presigned_post("shared-with-a-page", "by/${filename}")
        stored, part, header, other, absent, sent = site.visit(
            browser,
            [
                {
                    "url": url("put_object", "shared-with-a-page", "from a page"),
                    "options": {"method": "PUT", "body": "made by a page", "headers": text},
                },
                {
                    "url": url("get_object", "shared-with-a-page", "there"),
                    "options": {"headers": {"Range": "bytes=2-4"}},
                },
                {
                    "url": url("get_object", "shared-with-a-page", "there"),
                    "options": {"headers": {"X-Custom": "asked for, not allowed"}},
                },
                {"url": url("get_object", "not-shared", "there"), "options": {}},
                {"url": url("get_object", "shared-with-a-page", "absent"), "options": {}},
                {"url": form["url"], "options": {"method": "POST"}, "fields": form["fields"]},
            ],
        )
    put = s3.get_object(Bucket="shared-with-a-page", Key="from a page")
    assert put["Body"].read() == b"made by a page" and put["ContentType"] == "text/plain"
    assert stored == [200, "", put["ETag"]]
    assert part[:2] == [206, "234"]
    assert header[0] == other[0] == "refused"
    assert absent[0] == 404 and "NoSuchKey" in absent[1]
    chosen = s3.get_object(Bucket="shared-with-a-page", Key="by/chosen.txt")
    assert sent == [204, "", chosen["ETag"]] and chosen["Body"].read() == b"chosen by a person"
