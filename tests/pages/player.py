"""Uses the pages of the service in Chromium as a person does, and prints what happens as one JSON object.

usage: player.py BASE KEY ID VIDEO GONE LONG PICTURES
BASE: the address of the service; ID: a transcription with a recording of speech; VIDEO: one with a picture; GONE: one
whose recording cannot be played; LONG: one of eight hours; PICTURES: a folder for pictures of the pages
"""
import base64
import json
import sys
import tempfile
from pathlib import Path

from browse import Browser

CONTROLS = "a, button, select, input:not([type=hidden]), summary, audio, video"
VISIBLE = f"Array.from(document.querySelectorAll('{CONTROLS}')).filter((e) => e.checkVisibility())"


class Reader(Browser):
    def go(self, url):
        self.ask("/url", {"url": url})

    def element(self, selector):
        return next(iter(self.ask("/element", {"using": "css selector", "value": selector}).values()))

    def type(self, selector, text):
        self.ask(f"/element/{self.element(selector)}/value", {"text": text})

    def devtools(self, command, **parameters):
        return self.ask("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features):
        wanted = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.devtools("Emulation.setEmulatedMedia", features=wanted)

    def picture(self, path):
        path.write_bytes(base64.b64decode(self.ask("/screenshot", method="GET")))

    def unlabelled(self):
        """The controls for which a screen reader has no name."""
        ids = [next(iter(one.values())) for one in self.run(f"return {VISIBLE}")]
        nameless = [one for one in ids if not self.ask(f"/element/{one}/computedlabel", method="GET").strip()]
        return [self.ask(f"/element/{one}/property/outerHTML", method="GET") for one in nameless]


def sign_in(browser, base, key, path):
    browser.go(f"{base}/transcriptions/{path}")
    form = browser.run("return location.pathname")
    unlabelled = browser.unlabelled()
    browser.type("#key", key)
    browser.click("button[type=submit]", 0)
    browser.wait("document.querySelector('#transcript')")
    return {"form": form, "unlabelled": unlabelled, "cookie_of_scripts": browser.run("return document.cookie")}


# What of a page has too little contrast (WCAG 2.2, 1.4.3).
CONTRAST = """
    const rgb = (text) => text.match(/[0-9.]+/g).map(Number);
    const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const back = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
      if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
    const low = [];
    for (const e of document.querySelectorAll('body *')) {
      if (!Array.from(e.childNodes).some((n) => n.nodeType === 3 && n.data.trim())) continue;
      const [a, b] = [light(rgb(getComputedStyle(e).color)), light(back(e))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) low.push([e.tagName, e.className, (a + 0.05) / (b + 0.05)]);
    }
    return low;"""

WORD = "(document.querySelector('.w.now') || {}).textContent"


def use(browser, pictures):
    browser.wait("document.getElementById('media').readyState >= 1")
    read = {"unlabelled": browser.unlabelled(), "heading": browser.run("return document.querySelector('h1').innerText")}
    # At each word's time that word is marked, and no other.
    read["words"] = browser.run("""
        const media = document.getElementById('media');
        const wrong = [];
        let count = 0;
        for (const line of document.querySelectorAll('p[data-t]')) {
          const numbers = line.dataset.w.split(' ').map(Number);
          const text = line.querySelector('span').textContent;
          let at = 0, time = Math.round(Number(line.dataset.t) * 100);
          for (let n = 0; n + 3 < numbers.length; n += 4) {
            const word = text.slice(at + numbers[n], at + numbers[n] + numbers[n + 1]);
            at += numbers[n] + numbers[n + 1];
            media.currentTime = (time + numbers[n + 2]) / 100;
            time += numbers[n + 2] + numbers[n + 3];
            media.dispatchEvent(new Event('timeupdate'));
            const marked = Array.from(document.querySelectorAll('.w.now'), (w) => w.textContent);
            count += 1;
            if (marked.length !== 1 || marked[0] !== word) wrong.push([word, marked]);
          }
        }
        return { count, wrong };""")
    browser.run("document.getElementById('media').currentTime = 0; document.activeElement.blur()")
    browser.press(" ")
    browser.wait("!document.getElementById('media').paused && document.getElementById('media').currentTime > 0.8")
    browser.wait("document.querySelector('.w.now')")
    read["marked_while_it_plays"] = browser.run(f"return {WORD}")
    read["line"] = browser.run("return document.querySelector('p.now').getAttribute('aria-current')")
    browser.picture(pictures / "wide.png")
    browser.press(" ")
    browser.wait("document.getElementById('media').paused")
    browser.run("document.getElementById('media').currentTime = 6")
    browser.press("\ue012")  # the left arrow
    read["left"] = browser.run("return document.getElementById('media').currentTime")
    browser.press("\ue014")  # the right arrow
    read["right"] = browser.run("return document.getElementById('media').currentTime")
    speeds = []
    for key in (">", ">", "<", "<", "<"):
        browser.press(key)
        speeds.append(browser.run("return document.getElementById('media').playbackRate"))
    read["speeds"], read["speed_shown"] = speeds, browser.run("return document.getElementById('speed').value")
    browser.press(">")
    # Keys can be switched off, and a control keeps its own.
    browser.click("#shortcuts", 0)
    browser.run("document.activeElement.blur()")
    browser.press(">")
    read["keys_off"] = browser.run("return document.getElementById('media').playbackRate")
    browser.click("#shortcuts", 0)
    # A chapter, and a click on a word of a line that is not being spoken.
    browser.click("#chapters ~ ol a.play", 1)
    browser.wait("!document.getElementById('media').paused")
    read["chapter"] = [browser.run("return document.getElementById('media').currentTime"), browser.run(
        "return Number(document.querySelectorAll('#chapters ~ ol a.play')[1].dataset.t)"),
        browser.run("return location.hash")]
    browser.run("document.getElementById('media').pause()")
    read["clicked"] = browser.run("""
        const line = document.querySelector('p[data-t]:not(.now) span');
        line.scrollIntoView({ block: 'center' });
        const range = document.createRange();
        range.setStart(line.firstChild, 1); range.setEnd(line.firstChild, 2);
        const box = range.getBoundingClientRect();
        line.dispatchEvent(new MouseEvent('click', { bubbles: true, clientX: box.x + 1, clientY: box.y + box.height / 2 }));
        return [document.getElementById('media').currentTime, Number(line.parentNode.dataset.t)];""")
    browser.run("document.getElementById('media').pause()")
    return read


def scrolled(browser, motion):
    """How the page scrolls to the line that is spoken, if it is out of view."""
    browser.media(prefers_reduced_motion=motion)
    browser.run("""
        window.scrolls = [];
        Element.prototype.scrollIntoView = (options) => window.scrolls.push(options.behavior);
        const media = document.getElementById('media');
        media.currentTime = 0;
        media.dispatchEvent(new Event('timeupdate'));
        scrollTo(0, 0);
        media.currentTime = document.querySelectorAll('p[data-t]')[1].dataset.t;
        media.play();""")
    browser.wait("window.scrolls.length")
    browser.run("document.getElementById('media').pause()")
    return browser.run("return window.scrolls[0]")


def sizes(browser, pictures):
    """Narrow and dark: nothing is wider than the window, and every text has enough contrast (WCAG 2.2, 1.4.3)."""
    read = {}
    for scheme in ("light", "dark"):
        browser.media(prefers_color_scheme=scheme)
        browser.run("document.getElementById('media').currentTime = 1; document.getElementById('media').dispatchEvent(new Event('timeupdate'))")
        read[scheme] = browser.run(CONTRAST)
    browser.size(1000, 900)
    browser.run("scrollTo(0, 0)")
    browser.picture(pictures / "dark.png")
    browser.media(prefers_color_scheme="light")
    browser.size(360, 740)
    read["too_wide"] = browser.run("return document.documentElement.scrollWidth - 360")
    browser.run("document.getElementById('transcript').scrollIntoView()")
    browser.picture(pictures / "narrow.png")
    read["scrolls"] = [scrolled(browser, motion) for motion in ("no-preference", "reduce")]
    browser.media()
    browser.size(1000, 900)
    return read


def long_page(browser, url):
    browser.go(url)
    browser.wait("document.readyState === 'complete'")
    return browser.run("""
        const media = document.getElementById('media');
        const open = performance.getEntriesByType('navigation')[0];
        const begun = performance.now();
        for (let n = 0; n < 1000; n += 1) {
          Object.defineProperty(media, 'currentTime', { value: (n * 7919) % 28800, configurable: true, writable: true });
          media.dispatchEvent(new Event('timeupdate'));
        }
        return { server_ms: open.responseEnd - open.requestStart, open_ms: open.loadEventEnd, bytes: open.decodedBodySize,
          mark_ms: (performance.now() - begun) / 1000, elements: document.querySelectorAll('*').length,
          marked: document.querySelectorAll('.w.now').length };""")


def without_script(browser, url):
    browser.devtools("Emulation.setScriptExecutionDisabled", value=True)
    browser.go(url)
    browser.click("#chapters ~ ol a.play", 1)
    browser.devtools("Emulation.setScriptExecutionDisabled", value=False)
    return {
        "hash": browser.run("return location.hash"),
        "controls": browser.run("return document.getElementById('media').controls"),
        "hidden": browser.run("return document.getElementById('controls').hidden && document.getElementById('keys').hidden"),
        "lines": browser.run("return document.querySelectorAll('p[data-t]').length"),
    }


def policy_holds(browser):
    """What the policy forbids, the browser does not do."""
    browser.run("const s = document.createElement('style'); s.textContent = 'body { opacity: 0 }'; document.body.append(s)")
    browser.run("const i = new Image(); i.src = 'https://127.0.0.1:1/x'; document.body.append(i)")
    visible = browser.run("return getComputedStyle(document.body).opacity === '1'")
    return visible and sum("Content Security Policy" in line for line in browser.log()) >= 2


def main():
    base, key, one, video, gone, long, pictures = sys.argv[1:]
    pictures = Path(pictures)
    with tempfile.TemporaryDirectory() as profile:
        browser = Reader(profile)
        try:
            browser.size(1000, 900)
            read = {"sign_in": sign_in(browser, base, key, one)}
            read["page"] = use(browser, pictures)
            read["sizes"] = sizes(browser, pictures)
            browser.go(f"{base}/transcriptions")
            read["list"] = [browser.run("return document.querySelectorAll('ol.list li').length"), browser.unlabelled()]
            browser.picture(pictures / "list.png")
            browser.go(f"{base}/transcriptions/{video}")
            browser.wait("document.getElementById('media').readyState >= 1")
            read["video"] = browser.run("const m = document.getElementById('media'); return [m.tagName, m.videoWidth, m.duration]")
            read["log"] = [line for line in browser.log() if "favicon" not in line]
            browser.go(f"{base}/transcriptions/{gone}")
            browser.wait("!document.getElementById('problem').hidden")
            read["gone"] = browser.run("return [document.getElementById('media').hidden, document.querySelectorAll('p[data-t]').length > 0]")
            browser.log()
            read["long"] = long_page(browser, f"{base}/transcriptions/{long}")
            read["without_script"] = without_script(browser, f"{base}/transcriptions/{one}")
            browser.log()
            read["policy_holds"] = policy_holds(browser)
            browser.go(f"{base}/transcriptions/{one}")
            browser.click("header form button", 0)
            browser.wait("location.pathname.endsWith('/sign-in')")
            browser.go(f"{base}/transcriptions/{one}")
            read["signed_out"] = browser.run("return location.pathname")
            print(json.dumps(read))
        finally:
            browser.close()


if __name__ == "__main__":
    main()
