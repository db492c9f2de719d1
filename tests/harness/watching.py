"""Between a client and a server: acts after a request has come and before its answer goes back."""

import socket
import ssl
import threading

from harness.server import free_port


class Watching:
    """Passes requests on, from plain HTTP to a server's TLS.

    `before(method, path)` is called as a request has come, and `loses(method, path)` when the
    server has answered it: where that is true, the client's connection ends without the answer.
    What `answers(method, path)` gives then, if it is not None, is the answer in its place.
    """

    def __init__(self, server):
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.server = server
        self.context = ssl.create_default_context(cafile=str(server.ca))
        self.before = lambda method, path: None
        self.loses = lambda method, path: False
        self.answers = lambda method, path: None
        self.requests, self.lost = [], []

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        plain = socket.create_connection(("127.0.0.1", self.server.port))
        server = self.context.wrap_socket(plain, server_hostname="127.0.0.1")
        asked, answered = client.makefile("rb"), server.makefile("rb")
        try:
            while self._passes(client, server, asked, answered):
                pass
        except OSError:
            pass
        finally:
            # A socket is closed when the files that were made of it are.
            for end in (asked, answered, client, server):
                end.close()

    def _passes(self, client, server, asked, answered):
        """One request and its answer; whether more may come."""
        head, headers = _head(asked)
        if not head:
            return False
        method, path, _ = head.split(b"\r\n")[0].decode("latin1").split(" ", 2)
        body = asked.read(int(headers.get("content-length", 0)))
        self.requests.append((method, path))
        self.before(method, path)
        server.sendall(head + body)
        head, headers = _head(answered)
        if not head:
            return False
        if self.loses(method, path):
            self.lost.append((method, path))
            return False
        if (answer := self.answers(method, path)) is not None:
            client.sendall(answer)
            return False
        client.sendall(head)
        status = int(head.split()[1])
        if method == "HEAD" or status in (204, 304):
            return True
        if "chunked" in headers.get("transfer-encoding", ""):
            return _pass_chunks(answered, client)
        client.sendall(answered.read(int(headers.get("content-length", 0))))
        return True


def one_of(number, method, beginning):
    """Loses the answer of this number, counted from one, to requests of a method and path."""
    seen = []

    def loses(asked, path):
        if asked == method and path.startswith(beginning):
            seen.append(path)
            return len(seen) == number
        return False

    return loses


def _head(stream):
    """The head of a message as it came, and its headers; nothing at the end."""
    lines = []
    while not lines or lines[-1] != b"\r\n":
        line = stream.readline()
        if not line:
            return b"", {}
        lines.append(line)
    pairs = (line.decode("latin1").partition(":") for line in lines[1:-1])
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return b"".join(lines), headers


def _pass_chunks(source, sink):
    while True:
        line = source.readline()
        if not line:
            return False
        bytes_ahead = int(line.split(b";")[0], 16)
        sink.sendall(line + source.read(bytes_ahead + 2))
        if bytes_ahead == 0:
            return True
