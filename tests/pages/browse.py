"""Opens pages of scribed in Chromium, uses them as a reader does, and prints what happens as one JSON object.

usage: browse.py PAGE ALONE PICTURE    PAGE: a page beside its recording; ALONE: a copy without one; PICTURE: a PNG to write

It speaks WebDriver (W3C) with chromedriver and needs nothing but Python's own library.
"""
import base64
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

LIMIT = 60  # seconds that anything may take


class Browser:
    def __init__(self, profile):
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, text=True)
        ports = (re.search(r"successfully on port (\d+)", line) for line in self.driver.stdout)
        self.url = f"http://127.0.0.1:{next(port for port in ports if port).group(1)}/session"
        arguments = ["headless=new", "no-sandbox", "disable-gpu", "mute-audio", "window-size=800,900"]
        arguments += ["autoplay-policy=no-user-gesture-required", f"user-data-dir={profile}"]
        options = {"args": [f"--{argument}" for argument in arguments]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.url += "/" + self.ask("", {"capabilities": {"alwaysMatch": wanted}})["sessionId"]

    def ask(self, path, body=None, method="POST"):
        data = json.dumps(body or {}).encode() if method == "POST" else None
        asked = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=LIMIT) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as refused:
            sys.exit(f"{path} {json.dumps(body)[:300]}: {json.load(refused)['value']['message']}")

    def run(self, script):
        return self.ask("/execute/sync", {"script": script, "args": []})

    def wait(self, script):
        end = time.monotonic() + LIMIT
        while not (value := self.run(f"return {script}")):
            if time.monotonic() > end:
                sys.exit(f"this did not become true: {script}")
            time.sleep(0.05)
        return value

    def open(self, page):
        self.ask("/url", {"url": page.resolve().as_uri()})

    def click(self, selector, index):
        found = self.ask("/elements", {"using": "css selector", "value": selector})
        self.ask(f"/element/{next(iter(found[index].values()))}/click")

    def press(self, key):
        self.ask("/actions", {"actions": [{"type": "key", "id": "keys", "actions": [
            {"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]}]})

    def log(self):
        return [f"{entry['level']}: {entry['message']}" for entry in self.ask("/se/log", {"type": "browser"})]

    def close(self):
        try:
            self.ask("", method="DELETE")
        finally:
            self.driver.terminate()
            self.driver.wait()


def use(browser, page, picture):
    browser.open(page)
    browser.wait("media.readyState >= 1")
    length = browser.run("return media.duration")
    browser.click("section button", 1)
    browser.wait("document.querySelector('p.now')")
    at = browser.run("return media.currentTime")
    marked = browser.run("return document.querySelector('p.now').innerText")
    picture.write_bytes(base64.b64decode(browser.ask("/screenshot", method="GET")))
    browser.run("document.activeElement.blur(); media.pause(); media.currentTime = 5.5")
    browser.press("\ue012")  # the left arrow
    browser.wait("media.currentTime < 1")
    browser.press(" ")
    browser.wait("!media.paused")
    browser.run("media.pause()")
    read = {
        "length": length,
        "at": at,
        "marked": marked,
        "title": browser.run("return document.title"),
        "text": browser.run("return document.body.innerText"),
        "elements": browser.run("return document.querySelectorAll('img, iframe, object, a, link').length"),
        "hacked": browser.run("return window.hacked !== undefined"),
        "log": browser.log(),
    }
    # What the policy forbids, the browser does not do.
    browser.run("const s = document.createElement('script'); s.textContent = 'window.hacked = 1'; document.body.append(s)")
    browser.run("const i = new Image(); i.src = 'https://127.0.0.1:1/x'; document.body.append(i)")
    read["forbidden"] = browser.run("return window.hacked === undefined")
    read["violations"] = sum("Content Security Policy" in line for line in browser.log())
    return read


def use_alone(browser, page):
    browser.open(page)
    browser.wait("!document.getElementById('problem').hidden")
    return {
        "hidden": browser.run("return media.hidden"),
        "enabled": browser.run("return document.querySelectorAll('button:enabled').length"),
    }


def main():
    page, alone, picture = map(Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(profile)
        try:
            print(json.dumps({"page": use(browser, page, picture), "alone": use_alone(browser, alone)}))
        finally:
            browser.close()


if __name__ == "__main__":
    main()
