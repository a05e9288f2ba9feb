#!/usr/bin/env python3
"""S3 on the loopback for tests: moto's server behind a proxy that injects faults.

    object_server.py [address]

Listens at 127.0.0.1, or at the address. Prints the proxy's port, then reads commands from its standard input, one per line, and answers each with a line. Ends
when its standard input ends.

    bucket <name>            makes a bucket
    fail <fault> <count>     the next <count> requests fail with the fault; -1: all until the next command
    mix <share> <seed>       a share of all requests fails, each with a random transient fault
    unconditional            ignores conditions of writes, as some servers do
    unimplemented            answers 501 to requests with conditions, as others do
    well                     ends all faults
    requests                 answers with the number of requests so far
    objects                  answers with the sizes of all objects, by "bucket/name", as JSON
    bytes                    answers with how many bytes were written and read of each object, [[written], [read]] by
                             "bucket/name", a number for each request, as JSON

Faults: 500, 503 (SlowDown), cut (the request is carried out, its answer is cut), refuse (the connection is closed at
once), hang (no answer), expired (the credentials have expired), denied.
"""

import json
import logging
import random
import sys
import threading
import time
import urllib.parse

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import ThreadedMotoServer

import proxy

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
        self.bytes = {}
        self.well()

    def well(self):
        self.fault, self.count, self.share = None, 0, 0.0
        self.ignores_conditions = self.refuses_conditions = False

    def take(self):
        with self.lock:
            self.requests += 1
            if self.share and self.random.random() < self.share:
                return self.random.choice(PASSING)
            if self.count == 0:
                return None
            self.count -= self.count > 0
            return self.fault

    def note(self, method, path, size):
        if method in ("PUT", "GET"):
            name = urllib.parse.unquote(path.partition("?")[0]).lstrip("/")
            with self.lock:
                self.bytes.setdefault(name, [[], []])[method == "GET"].append(size)

    def command(self, words):
        with self.lock:
            if words[0] == "bytes":
                return json.dumps(self.bytes)
            if words[0] == "fail":
                self.well()
                self.fault, self.count = words[1], int(words[2])
            elif words[0] == "mix":
                self.well()
                self.share, self.random = float(words[1]), random.Random(int(words[2]))
            elif words[0] == "unconditional":
                self.ignores_conditions = True
            elif words[0] == "unimplemented":
                self.refuses_conditions = True
            elif words[0] == "well":
                self.well()
            return str(self.requests)


FAULTS = Faults()


# Held during a conditional write: moto checks the condition first, and another thread might write before it does.
CONDITIONS = threading.Lock()


def is_well_signed(method, path, headers):
    """Returns True if Amazon's own library makes the same signature for the request."""
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


class S3(proxy.Proxy):
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
            if FAULTS.refuses_conditions:
                return self.answer(501, "NotImplemented", "A header implies functionality that is not implemented.")
            if FAULTS.ignores_conditions:
                del self.headers["If-Match"], self.headers["If-None-Match"]
            with CONDITIONS:
                response, content = self.forward(body)
        else:
            response, content = self.forward(body)
        if response.status < 300:
            FAULTS.note(self.command, self.path, len(body if self.command == "PUT" else content))
        if fault == "cut" and (self.command == "HEAD" or not content):
            return self.cut_off()
        length = response.getheader("Content-Length") if self.command == "HEAD" else None
        self.send_head(response.status, response.getheaders(), length or len(content))
        if fault == "cut":
            self.wfile.write(content[: len(content) // 2])
            return self.cut_off()
        if self.command != "HEAD":
            self.wfile.write(content)
        return None

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = serve


def sizes(client):
    found = {}
    for bucket in client.list_buckets()["Buckets"]:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket["Name"]):
            found |= {f"{bucket['Name']}/{one['Key']}": one["Size"] for one in page.get("Contents", [])}
    return json.dumps(found)


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, S3.port = moto.get_host_and_port()
    port = proxy.start(S3, *sys.argv[1:])
    client = boto3.client("s3", endpoint_url=f"http://{host}:{S3.port}", region_name="us-east-1",
                          aws_access_key_id="test", aws_secret_access_key="test")
    print(port, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "bucket":
            client.create_bucket(Bucket=words[1])
        print(sizes(client) if words[0] == "objects" else FAULTS.command(words), flush=True)
    moto.stop()


if __name__ == "__main__":
    main()
