#!/usr/bin/env python3
"""S3 on the loopback for tests: moto's server, and in front of it a proxy that injects faults.

    object_server.py

Prints the proxy's port and then obeys lines on its standard input, each of which it answers with a line. It ends with its
standard input.

    bucket <name>            makes a bucket
    fail <fault> <count>     the next requests fail so, -1: all of them until another word
    mix <share> <seed>       a share of all requests fails, each in one of the ways that pass
    unconditional            conditions of writes are ignored, as some servers do
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
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
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
        self.fault, self.count, self.share, self.ignores_conditions = None, 0, 0.0, False

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
            elif words[0] == "unconditional":
                self.ignores_conditions = True
            elif words[0] == "well":
                self.well()
            return str(self.requests)


FAULTS = Faults()


# What is looked at and written in one step: moto looks first, and another thread may write then.
CONDITIONS = threading.Lock()


def is_well_signed(method, path, headers):
    """Whether the signature is that which Amazon's own library makes of the same request."""
    sent = headers.get("Authorization", "")
    if "SignedHeaders=" not in sent or "Credential=test/" not in sent:
        return False
    names = sent.split("SignedHeaders=")[1].split(",")[0].split(";")
    request = AWSRequest(method=method, url=f"http://{headers['Host']}{path}",
                         headers={name: headers[name] for name in names})
    request.context["timestamp"] = headers["X-Amz-Date"]
    auth = S3SigV4Auth(Credentials("test", "test"), "s3", "us-east-1")
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return sent.endswith("Signature=" + signature)


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
        if not is_well_signed(self.command, self.path, self.headers):
            return self.answer(403, "SignatureDoesNotMatch", "The signature is not that of this request.")
        if "If-Match" in self.headers or "If-None-Match" in self.headers:
            if FAULTS.ignores_conditions:
                del self.headers["If-Match"], self.headers["If-None-Match"]
            with CONDITIONS:
                response, content = self.forward(body)
        else:
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
