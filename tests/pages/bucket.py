"""Plays a recording in a bucket in Chromium as a person does, and prints what happens as one JSON object.

usage: bucket.py BASE
BASE: the address of a daemon with a job 1 that is written, and has a recording of 24 s in a bucket with several utterances
"""
import json
import sys
import tempfile

from player import Reader

MEDIA = "document.getElementById('media')"
# What the page has requested of the recording.
REQUESTED = "performance.getEntriesByType('resource').filter((one) => /[/](media|waveform)/.test(new URL(one.name).pathname)).length"


def played(browser, least):
    """Waits until it plays; the second that it should at least be at, the one that it is at, and the length."""
    browser.wait(f"!{MEDIA}.paused && {MEDIA}.currentTime > {least}")
    browser.run(f"{MEDIA}.pause()")
    return [least, *browser.run(f"return [{MEDIA}.currentTime, {MEDIA}.duration]")]


def main():
    base = sys.argv[1]
    with tempfile.TemporaryDirectory() as profile:
        browser = Reader(profile)
        read = {}
        try:
            browser.size(1000, 900)
            browser.go(f"{base}/jobs/1")
            browser.wait("document.readyState === 'complete' && !document.getElementById('controls').hidden")
            early = browser.run(f"return {REQUESTED}")
            said = float(browser.run("return document.querySelectorAll('#lines p a[data-t]')[1].dataset.t"))
            browser.click("#lines p a[data-t]", 1)
            read["from_word"] = played(browser, said)
            browser.go(f"{base}/jobs/1?at=8.5")
            browser.wait("document.readyState === 'complete' && document.querySelector('#lines p.now')")
            read["early"] = [early, browser.run(f"return {REQUESTED}")]
            line = "document.querySelector('#lines p.now')"
            read["moment"] = browser.run(f"return [{MEDIA}.currentTime, Number({line}.dataset.t) <= 8.5]")
            browser.run("document.activeElement.blur()")
            browser.press(" ")
            read["from_moment"] = played(browser, 8.5)
            browser.go(f"{base}/jobs/1/edit")
            browser.wait("document.querySelectorAll('#cues button.play').length > 3")
            start = browser.run("return document.querySelectorAll('#cues input[data-part=start]')[2].value")
            browser.click("#cues button.play", 2)
            read["in_editor"] = played(browser, float(start.split(":")[-1]))
            read["log"] = [line for line in browser.log() if "favicon" not in line]
            print(json.dumps(read))
        finally:
            browser.close()


main()
