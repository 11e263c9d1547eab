"""Uses the pages of the queue in Chromium as a person does, and prints what happens as one JSON object.

usage: queue.py BASE INBOX LATE TOKEN PICTURES
BASE: the address of a daemon with a job 1 that is written and has a recording of speech, and with failed jobs; INBOX: the
folder of its source; LATE: a recording to be put there; TOKEN: the token of an operator, for a browser that is not known;
PICTURES: a folder for pictures of the pages
"""
import json
import shutil
import sys
import tempfile
from pathlib import Path

from player import CONTRAST, Reader

VIEWS = {"overview": "/", "jobs": "/jobs", "failed": "/jobs?stage=failed", "job": "/jobs/1", "sources": "/sources", "plan": "/plan", "search": "/search?q=had",
         "sign-in": "/sign-in", "nothing": "/jobs?text=no-such-name", "failure": "/jobs/999"}


def looks(browser, base, pictures):
    """Each page in each size and scheme: controls without a name, text without contrast, what is too wide."""
    wrong = []
    for name, path in VIEWS.items():
        browser.go(base + path)
        browser.wait("document.readyState === 'complete'")
        wrong += [[name, "no name", control] for control in browser.unlabelled()]
        for scheme in ("light", "dark"):
            browser.media(prefers_color_scheme=scheme)
            wrong += [[name, scheme, low] for low in browser.run(CONTRAST)]
            browser.size(1200, 900)
            browser.picture(pictures / f"{name}-{scheme}.png")
        browser.media(prefers_color_scheme="light")
        browser.size(360, 740)
        wide = browser.run("return document.documentElement.scrollWidth - 360")
        wrong += [[name, "too wide", wide]] if wide > 0 else []
        browser.picture(pictures / f"{name}-narrow.png")
        browser.size(1200, 900)
        headings = browser.run("return document.querySelectorAll('h1').length")
        wrong += [[name, "headings", headings]] if headings != 1 else []
    browser.media()
    return wrong


def play(browser, base):
    """The recording plays, the word that is spoken is marked, and a click on the waveform plays there."""
    browser.go(f"{base}/jobs/1")
    browser.wait("document.getElementById('media').readyState >= 1")
    browser.wait("document.querySelector('#waveform img').naturalWidth > 0")
    browser.run("document.activeElement.blur()")
    browser.press(" ")
    browser.wait("!document.getElementById('media').paused && document.querySelector('.w.now')")
    word = browser.run("return document.querySelector('.w.now').textContent")
    browser.run("document.getElementById('media').pause()")
    at = browser.run("""
        const wave = document.getElementById('waveform');
        const box = wave.getBoundingClientRect();
        wave.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + 5 }));
        const media = document.getElementById('media');
        media.pause();
        return media.currentTime / media.duration;""")
    return {"word": word, "at": at}


def live(browser, base, inbox, late):
    """An open page shows what happened, without a hand."""
    browser.go(f"{base}/jobs")
    browser.wait("document.querySelector('table.jobs')")
    name = Path(late).name
    there = browser.run(f"return document.body.innerText.includes('{name}')")
    shutil.copy(late, Path(inbox) / name)
    browser.wait(f"document.body.innerText.includes('{name}')")
    return [there, True]


def handle_all(browser, base):
    """Retries all failed jobs: the list, the question, the progress."""
    browser.go(f"{base}/jobs?stage=failed")
    browser.click("details.bulk summary", 0)
    browser.click("details.bulk button", 0)
    browser.wait("document.querySelector('h1').innerText.startsWith('Retry')")
    asked = browser.run("return document.querySelector('h1').innerText")
    browser.click("form.actions button", 0)
    browser.wait("document.body.innerText.includes(', ended;')")
    return [asked, browser.run("return document.querySelector('[role=status]').innerText")]


def keyboard(browser, base):
    """The first key leads to the link over the heading, and every control is reached."""
    browser.go(f"{base}/jobs")
    browser.press("\ue004")  # tab
    first = browser.run("return document.activeElement.className")
    visible = browser.run("return document.activeElement.getBoundingClientRect().x >= 0")
    return [first, visible]


def main():
    base, inbox, late, token, pictures = sys.argv[1:]
    pictures = Path(pictures)
    with tempfile.TemporaryDirectory() as profile:
        browser = Reader(profile)
        try:
            browser.size(1200, 900)
            read = {"looks": looks(browser, base, pictures)}
            browser.log()
            read["play"] = play(browser, base)
            read["live"] = live(browser, base, inbox, late)
            read["keyboard"] = keyboard(browser, base)
            read["all"] = handle_all(browser, base)
            browser.go(f"{base}/sign-in?to=sources")
            browser.type("#password", token)
            browser.click("form.sign-in button", 0)
            browser.wait("location.pathname === '/sources'")
            read["cookie_of_scripts"] = browser.run("return document.cookie")
            read["signed_in"] = browser.run("return document.querySelector('.who').innerText")
            browser.click(".who button", 0)
            browser.wait("location.pathname === '/sign-in'")
            read["log"] = [line for line in browser.log() if "favicon" not in line]
            print(json.dumps(read))
        finally:
            browser.close()


main()
