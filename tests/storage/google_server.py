#!/usr/bin/env python3
"""Google Cloud Storage on the loopback for tests: an emulator behind a proxy that checks conditions of writes.

    google_server.py

Prints the proxy's port, then reads commands from its standard input, one per line, and answers each with a line. Ends
when its standard input ends.

    bucket <name>            makes a bucket
    unconditional            ignores conditions of writes
    well                     checks them again
    requests                 answers with the number of requests so far

The emulator numbers the successive objects of a name, but neither returns the number of the object that it sends nor
compares it. The proxy does both, with the wording of Google's answers.
"""

import http.client
import json
import logging
import sys
import threading
import urllib.parse

from gcp_storage_emulator import server as emulators
from gcp_storage_emulator.server import create_server

import proxy


def read_data(handler, query, read=emulators._read_data):
    """Reads data as the emulator does, but lets one request store an empty object."""
    data = read(handler, query)
    return b"" if data is None and query.get("uploadType") == ["media"] else data


emulators._read_data = read_data

class State:
    lock = threading.RLock()  # makes a check and the write after it one step
    requests = 0
    ignores_conditions = False


class Google(proxy.Proxy):
    def generation(self, bucket, name):
        """Returns the generation of the object; "0" if there is none."""
        path = f"/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}"
        response, body = self.ask("GET", path)
        return json.loads(body)["generation"] if response.status == 200 else "0"

    def serve(self):
        body = self.body()  # without the lock: the client may be stopped meanwhile
        with State.lock:
            State.requests += 1
            answer = self.carried_out(body)
        self.answer(*answer)

    def carried_out(self, body):
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        words = parts.path.strip("/").split("/")
        bucket = words[words.index("b") + 1] if "b" in words else ""
        if "ifGenerationMatch" in query and not State.ignores_conditions:
            expected = query["ifGenerationMatch"]
            if not expected.isdigit():
                return 400, [], b'{"error": {"code": 400, "message": "Invalid value for: ifGenerationMatch"}}'
            if self.generation(bucket, query["name"]) != expected:
                return 412, [], b'{"error": {"code": 412, "message": "At least one of the pre-conditions failed."}}'
        response, content = self.forward(body)
        status, headers = response.status, response.getheaders()
        if status == 200 and query.get("alt") == "media":
            name = urllib.parse.unquote(words[words.index("o") + 1])
            headers.append(("x-goog-generation", self.generation(bucket, name)))
        return status, headers, content

    def answer(self, status, headers, content):
        self.send_head(status, headers, len(content))
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


def main():
    logging.disable(logging.CRITICAL)
    emulator = create_server("127.0.0.1", 0, in_memory=True)
    emulator.start()
    Google.port = emulator._api._httpd.server_address[1]
    print(proxy.start(Google), flush=True)
    for line in sys.stdin:
        words = line.split()
        with State.lock:
            if words[0] == "bucket":
                connection = http.client.HTTPConnection("127.0.0.1", Google.port)
                connection.request("POST", "/storage/v1/b?project=test", json.dumps({"name": words[1]}),
                                   {"Content-Type": "application/json"})
                assert connection.getresponse().status == 200
            elif words[0] in ("unconditional", "well"):
                State.ignores_conditions = words[0] == "unconditional"
            print(State.requests, flush=True)
    emulator.stop()


if __name__ == "__main__":
    main()
