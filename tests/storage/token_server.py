#!/usr/bin/env python3
"""Token endpoints of Google and Azure, on the loopback for tests.

    token_server.py <folder>

Writes Google's credentials of a service account and of a user into the folder, prints its port, and ends when its
standard input ends. Each token names the credentials that it was given for.
"""

import base64
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def decoded(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def form(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        assert self.headers["Content-Type"] == "application/x-www-form-urlencoded"
        return dict(urllib.parse.parse_qsl(body, strict_parsing=True))

    def of_google(self, form):
        if form["grant_type"] == "refresh_token":
            wanted = {"client_id": "id", "client_secret": "a+b/c=", "refresh_token": "1//refresh"}
            return "user" if wanted.items() <= form.items() else None
        assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        signed, signature = form["assertion"].rsplit(".", 1)
        try:
            KEY.public_key().verify(decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        except InvalidSignature:
            return None
        head, claims = (json.loads(decoded(part)) for part in signed.split("."))
        assert head == {"alg": "RS256", "typ": "JWT", "kid": "key"}
        assert claims["aud"] == f"http://127.0.0.1:{self.server.server_address[1]}/google"
        assert abs(claims["iat"] - time.time()) < 60 and claims["exp"] == claims["iat"] + 3600
        return "service account of " + claims["iss"] if "devstorage" in claims["scope"] else None

    def of_tenant(self, form):
        wanted = {"grant_type": "client_credentials", "client_id": "client",
                  "scope": "https://storage.azure.com/.default"}
        if not wanted.items() <= form.items():
            return None
        if form.get("client_secret") == "s&cret":
            return "environment"
        bearer = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        is_workload = form.get("client_assertion_type") == bearer and form.get("client_assertion") == "federated"
        return "workload identity" if is_workload else None

    def do_POST(self):
        if self.path == "/google":
            self.answer(self.of_google(self.form()))
        elif self.path == "/tenant/oauth2/v2.0/token":
            self.answer(self.of_tenant(self.form()))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path == "/computeMetadata/v1/instance/service-accounts/default/token":
            self.answer("machine" if self.headers["Metadata-Flavor"] == "Google" else None)
        elif url.path == "/metadata/identity/oauth2/token" and query["resource"] == "https://storage.azure.com":
            is_asked_well = self.headers["Metadata"] == "true" and query["api-version"] == "2018-02-01"
            self.answer("machine " + query.get("client_id", "itself") if is_asked_well else None, seconds="86400")

    def answer(self, token, seconds=3600):
        body = {"access_token": token, "expires_in": seconds} if token else {"error": "invalid_grant"}
        text = json.dumps(body).encode()
        self.send_response(200 if token else 401)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    folder = pathlib.Path(sys.argv[1])
    service = f"http://127.0.0.1:{server.server_address[1]}/google"
    pem = KEY.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8,
                            serialization.NoEncryption()).decode()
    (folder / "service_account.json").write_text(json.dumps({
        "type": "service_account", "client_email": "me@project", "private_key_id": "key", "private_key": pem,
        "token_uri": service}))
    (folder / "user.json").write_text(json.dumps({
        "type": "authorized_user", "client_id": "id", "client_secret": "a+b/c=", "refresh_token": "1//refresh",
        "token_uri": service}))
    (folder / "other.json").write_text(json.dumps({"type": "external_account"}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_address[1], flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
