"""A proxy on the loopback in front of an emulator of an object storage, used by the servers in this folder."""

import http.client
import http.server
import socketserver
import threading

OF_ONE_CONNECTION = ("connection", "transfer-encoding", "content-length")


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    port = 0  # of the emulator

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def forward(self, body):
        """Returns the emulator's response to this request, and its content."""
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in (*OF_ONE_CONNECTION, "expect")}
        return self.ask(self.command, self.path, headers, body)

    def ask(self, method, path, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body=body, headers=headers or {})
        response = connection.getresponse()
        return response, response.read()

    def send_head(self, status, headers, length):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in (*OF_ONE_CONNECTION, "server", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):  # the client is gone
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def start(handler, address="127.0.0.1"):
    """Starts the proxy and returns its port."""
    server = Server((address, 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]
