#!/usr/bin/env python3
"""Compares what the embedded service transcribes on one core and on two, with PocketSphinx.

usage: benches/cores.py RECORDING…    after `cargo build --release`

Each recording is transcribed often enough for 24 transcriptions in all; the clock runs from the first create to the last end, one
transcription after the start. Recordings of half a minute and more show the recogniser; shorter ones show its start too.
"""
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "target/release/scribed"
KEY = "a-key-for-a-measurement"
TRANSCRIPTIONS = 24


class Service:
    def __init__(self, folder, cores):
        config = Path(folder) / "jobs.toml"
        config.write_text('[serve]\nlisten = "127.0.0.1:0"\nkeys = ["env:KEY_OF_THE_BENCH"]\n')
        command = ["taskset", "-c", cores, PROGRAM, "--config", config, "--json", "serve"]
        environment = dict(os.environ, KEY_OF_THE_BENCH=KEY)
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment, cwd=folder)
        self.url = json.loads(self.process.stdout.readline())["url"]

    def ask(self, path, body=None, content="application/json"):
        headers = {"x-service-key": KEY, **({"content-type": content} if body else {})}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, body, headers)) as answer:
            return json.load(answer)

    def upload(self, path):
        head = f'--b\r\ncontent-disposition: form-data; name="audio"; filename="{path.name}"\r\n\r\n'.encode()
        return self.ask("/v2/upload", head + path.read_bytes() + b"\r\n--b--\r\n", "multipart/form-data; boundary=b")["audio_url"]

    def create(self, url):
        return self.ask("/v2/pre-recorded", json.dumps({"audio_url": url}).encode())["id"]

    def wait(self, transcription):
        while (record := self.ask(f"/v2/pre-recorded/{transcription}"))["status"] not in ("done", "error"):
            time.sleep(0.05)
        if record["status"] == "error":
            sys.exit(f"a transcription failed: {record}")

    def end(self):
        self.process.terminate()
        self.process.wait()


def measure(recordings, cores):
    with tempfile.TemporaryDirectory() as folder:
        service = Service(folder, cores)
        try:
            urls = [service.upload(path) for path in recordings]
            service.wait(service.create(urls[0]))
            begun = time.monotonic()
            transcriptions = [service.create(urls[n % len(urls)]) for n in range(TRANSCRIPTIONS)]
            for transcription in transcriptions:
                service.wait(transcription)
            return time.monotonic() - begun
        finally:
            service.end()


def main():
    recordings = [Path(path) for path in sys.argv[1:]]
    if not recordings:
        sys.exit(__doc__)
    one, two = measure(recordings, "0"), measure(recordings, "0,1")
    print(f"{TRANSCRIPTIONS} transcriptions: {one:.1f} s on one core, {two:.1f} s on two: {one / two:.2f} times the throughput")


main()
