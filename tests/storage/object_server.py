#!/usr/bin/env python3
"""S3 on the loopback for tests: moto's server, and in front of it a proxy that injects faults.

    object_server.py

Prints the proxy's port and then obeys lines on its standard input, each of which it answers with a line. It ends with its
standard input.

    bucket <name>            makes a bucket
    fail <fault> <count>     the next requests fail so, -1: all of them until another word
    mix <share> <seed>       a share of all requests fails, each in one of the ways that pass
    well                     no faults any more
    requests                 how many there have been

Faults: 500, 503 (SlowDown), cut (the request is carried out, its answer is cut), refuse (the connection is closed at
once), hang (no answer), expired (the credentials have), denied.
"""

import http.client
import http.server
import logging
import random
import socketserver
import sys
import threading
import time

import boto3
from moto.server import ThreadedMotoServer

PASSING = ["500", "503", "cut", "refuse"]
ANSWERS = {
    "500": (500, "InternalError", "We encountered an internal error. Please try again."),
    "503": (503, "SlowDown", "Please reduce your request rate."),
    "expired": (400, "ExpiredToken", "The provided token has expired."),
    "denied": (403, "AccessDenied", "Access Denied"),
}


class Faults:
    def __init__(self):
        self.lock = threading.Lock()
        self.requests = 0
        self.well()

    def well(self):
        self.fault, self.count, self.share = None, 0, 0.0

    def take(self):
        with self.lock:
            self.requests += 1
            if self.share and self.random.random() < self.share:
                return self.random.choice(PASSING)
            if self.count == 0:
                return None
            self.count -= self.count > 0
            return self.fault

    def command(self, words):
        with self.lock:
            if words[0] == "fail":
                self.well()
                self.fault, self.count = words[1], int(words[2])
            elif words[0] == "mix":
                self.well()
                self.share, self.random = float(words[1]), random.Random(int(words[2]))
            elif words[0] == "well":
                self.well()
            return str(self.requests)


FAULTS = Faults()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    moto_port = 0

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

    def cut_off(self):
        self.close_connection = True
        self.connection.close()

    def answer(self, status, code, message):
        text = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)

    def forward(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.moto_port, timeout=60)
        headers = {name: value for name, value in self.headers.items()
                   if name.lower() not in ("transfer-encoding", "content-length", "connection", "expect")}
        connection.request(self.command, self.path, body=body, headers=headers)
        response = connection.getresponse()
        return response, response.read()

    def serve(self):
        fault = FAULTS.take()
        if fault == "refuse":
            return self.cut_off()
        body = self.body()
        if fault == "hang":
            time.sleep(60)
            return self.cut_off()
        if fault in ANSWERS:
            return self.answer(*ANSWERS[fault])
        response, content = self.forward(body)
        if fault == "cut" and (self.command == "HEAD" or not content):
            return self.cut_off()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "server", "date"):
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(content)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(content[: len(content) // 2])
            return self.cut_off()
        if self.command != "HEAD":
            self.wfile.write(content)
        return None

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):  # who asked is gone
            pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, Proxy.moto_port = moto.get_host_and_port()
    proxy = Server(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    client = boto3.client("s3", endpoint_url=f"http://{host}:{Proxy.moto_port}", region_name="us-east-1",
                          aws_access_key_id="test", aws_secret_access_key="test")
    print(proxy.server_address[1], flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "bucket":
            client.create_bucket(Bucket=words[1])
        print(FAULTS.command(words), flush=True)
    moto.stop()


if __name__ == "__main__":
    main()
