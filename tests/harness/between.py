"""Stands between a client and a server, and loses answers: the server has done what was asked."""

import http.client
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

OWN = {"connection", "transfer-encoding"}


class Between:
    """Takes plain HTTP on a port of its own. An answer for which `loses(method, path)` is true does
    not come: its connection ends instead."""

    def __init__(self, server, loses):
        trusted = ssl.create_default_context(cafile=str(server.ca))
        self.lost = lost = []

        class Passing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def handle_one_request(self):
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self.close_connection = False
                self.pass_on()

            def pass_on(self):
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                there = http.client.HTTPSConnection("127.0.0.1", server.port, context=trusted)
                there.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    there.putheader(name, value)
                there.endheaders(body)
                answer = there.getresponse()
                came = answer.read()
                there.close()
                if loses(self.command, self.path):
                    lost.append((self.command, self.path))
                    self.close_connection = True
                    return
                self.send_response_only(answer.status)
                told = {name.lower(): value for name, value in answer.getheaders()}
                if self.command != "HEAD" and answer.status not in (204, 304):
                    told["content-length"] = str(len(came))
                for name, value in told.items():
                    if name not in OWN:
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(came)

        self.listening = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self.listening.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.listening.server_port}"

    def __enter__(self):
        threading.Thread(target=self.listening.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listening.shutdown()
        self.listening.server_close()


def one_of(number, method, beginning):
    """Loses the answer of this number, counted from one, to requests of a method and path."""
    seen = []

    def loses(asked, path):
        if asked == method and path.startswith(beginning):
            seen.append(path)
            return len(seen) == number
        return False

    return loses
