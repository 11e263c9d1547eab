"""Edits a transcript in Chromium as a person does, and prints what was not as it should be as one JSON object.

usage: editor.py DAEMON BASE JOB LONG MEETING PICTURES
DAEMON: the command that runs scribed, as a JSON list; this script starts it and kills it; BASE: the address of its pages;
JOB: a job with a transcript of several captions and a hostile text; LONG: one of 2,000 captions or more, or 0; MEETING: one
with the text of the pictures of the documentation; PICTURES: a folder for pictures of the page
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

from player import CONTRAST, Reader

KEYS = {"control": "\ue009", "alt": "\ue00a", "shift": "\ue008", "enter": "\ue007", "tab": "\ue004", "escape": "\ue00c",
        "end": "\ue010", "down": "\ue015", "up": "\ue013"}
TEXTS = "Array.from(document.querySelectorAll('#cues textarea'), (t) => t.value)"
STATE = "document.getElementById('save-state').dataset.state"
# The editor keeps its own text of the page; a name or a transcript that were markup would make elements or run.
HACKED = "window.hacked !== undefined || document.querySelectorAll('#editor img, #editor iframe, #editor b, #editor script').length > 0"


class Daemon:
    def __init__(self, command, base):
        self.command, self.base = command, base
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL)
        end = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(self.base, timeout=5).close()
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    sys.exit("scribed does not answer")
                time.sleep(0.05)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


class Editor(Reader):
    def __init__(self, profile, url):
        super().__init__(profile)
        self.profile, self.page = profile, url
        self.problems = []

    def open(self):
        self.go(self.page)
        self.wait("document.querySelectorAll('#cues textarea').length > 0")

    def check(self, holds, words):
        if not holds:
            self.problems.append(words if isinstance(words, str) else json.dumps(words))

    def texts(self):
        return self.run(f"return {TEXTS}")

    def chord(self, *keys):
        down = [{"type": "keyDown", "value": KEYS.get(key, key)} for key in keys]
        up = [{"type": "keyUp", "value": KEYS.get(key, key)} for key in reversed(keys)]
        self.ask("/actions", {"actions": [{"type": "key", "id": "keys", "actions": down + up}]})

    def keys(self, text):
        active = next(iter(self.ask("/element/active", method="GET").values()))
        self.ask(f"/element/{active}/value", {"text": text})

    def put_cursor(self, index, at):
        """Clicks into the text of a caption, and puts the cursor before the character `at`."""
        # Captions that get their controls move the others.
        self.wait(f"""(() => {{
            const text = document.querySelectorAll('#cues textarea')[{index}];
            text.scrollIntoView({{ block: 'center' }});
            const box = text.getBoundingClientRect();
            return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2) === text;
        }})()""")
        self.click("#cues textarea", index)
        self.run(f"const t = document.querySelectorAll('#cues textarea')[{index}]; t.focus(); t.setSelectionRange({at}, {at})")

    def comes_true(self, holds):
        """Whether something holds soon: a busy browser answers for a key before the page has handled it."""
        end = time.monotonic() + 20
        while not holds() and time.monotonic() < end:
            time.sleep(0.05)
        return holds()

    def saved(self):
        self.wait(f"{STATE} === 'saved'")

    def on_server(self):
        """The draft as the server has it."""
        return self.run("""
            const request = new XMLHttpRequest();
            request.open('GET', document.getElementById('editor').dataset.transcript, false);
            request.send();
            const read = JSON.parse(request.responseText);
            return read.draft || read;""")

    def nameless(self, where):
        """The controls below an element for which a screen reader has no name."""
        controls = self.run(f"""return Array.from(document.querySelectorAll('{where} :is(a, button, select, input, textarea, audio, video)'))
            .filter((control) => control.checkVisibility())""")
        ids = [next(iter(one.values())) for one in controls]
        nameless = [one for one in ids if not self.ask(f"/element/{one}/computedlabel", method="GET").strip()]
        return [self.ask(f"/element/{one}/property/outerHTML", method="GET")[:200] for one in nameless]

    def errors(self):
        """What the console says, but for the answers that the page handles."""
        return [line for line in self.log() if "status of 409" not in line and "favicon" not in line]

    def window(self):
        return self.ask("/window", method="GET")

    def switch(self, handle):
        self.ask("/window", {"handle": handle})


def whole_page(editor, pictures):
    editor.check(not editor.run(f"return {HACKED}"), "hostile text became markup")
    editor.check(editor.nameless("#editor") == [], ["unlabelled", editor.nameless("#editor")])
    for dialog, opener in [("help-dialog", "help"), ("speakers-dialog", "speakers"), ("discard-dialog", None)]:
        editor.run(f"document.getElementById('{opener}').click()" if opener else f"document.getElementById('{dialog}').showModal()")
        editor.check(editor.run(f"return document.getElementById('{dialog}').open"), f"{dialog} does not open")
        editor.check(editor.nameless(f"#{dialog}") == [], [dialog, editor.nameless(f"#{dialog}")])
        editor.chord("escape")
    editor.chord("control", "f")
    editor.check(editor.run("return document.activeElement.id") == "find-text", "Ctrl+F does not go to the find field")
    editor.check(editor.nameless("#find") == [], ["find", editor.nameless("#find")])
    editor.chord("escape")
    editor.put_cursor(0, 0)
    for scheme in ("light", "dark"):
        editor.media(prefers_color_scheme=scheme)
        low = [one for one in editor.run(CONTRAST) if "marks" not in str(one[1]) and "unsure" not in str(one[1]) and "said" not in str(one[1])]
        editor.check(low == [], [scheme, low])
        editor.run("scrollTo(0, 0)")
        editor.picture(pictures / f"editor-{scheme}.png")
    editor.media(prefers_color_scheme="light")
    editor.size(360, 740)
    editor.check(editor.run("return document.documentElement.scrollWidth") <= 360, "the narrow page is too wide")
    editor.run("document.querySelector('#cues li').scrollIntoView()")
    editor.picture(pictures / "editor-narrow.png")
    editor.media()
    editor.size(1000, 900)


def operations(editor):
    before = editor.texts()
    count = editor.run("return document.querySelectorAll('#cues > li').length")
    first = before[0]
    # Typing is one step; a click elsewhere loses nothing.
    editor.put_cursor(0, len(first))
    editor.keys(" typed by hand")
    editor.click("#editor h1", 0)
    editor.check(editor.texts()[0] == f"{first} typed by hand", "a click outside loses text")
    editor.saved()
    editor.check(editor.on_server()["cues"][0]["text"] == f"{first} typed by hand", "the text is not saved by itself")
    # Splitting: the second part begins when its first word is said.
    at = len(first.split(" ")[0])
    editor.put_cursor(0, at)
    editor.chord("control", "enter")
    texts = editor.texts()
    editor.check(texts[0] == first[:at] and texts[1] == f"{first[at + 1:]} typed by hand", ["split", texts[:2]])
    times = editor.run("return Array.from(document.querySelectorAll('#cues input.time'), (t) => t.value).slice(0, 4)")
    editor.check(times == sorted(times), ["split times", times])
    editor.chord("control", "z")
    editor.check(editor.texts()[0] == f"{first} typed by hand", "undo does not join what was split")
    editor.chord("control", "shift", "z")
    editor.check(editor.texts()[0] == first[:at], "redo does not split again")
    editor.put_cursor(0, 0)
    editor.chord("control", "shift", "enter")
    editor.check(editor.texts()[0].replace("\n", " ") == f"{first} typed by hand", ["join", editor.texts()[0]])
    # Shifting this caption and all that follow.
    starts = "Array.from(document.querySelectorAll('#cues input[data-part=start]'), (t) => t.value)"
    old = editor.run(f"return {starts}")
    editor.put_cursor(1, 0)
    editor.click("#shift", 0)
    editor.run("document.getElementById('shift-by').value = '250'; document.getElementById('shift-following').checked = true")
    editor.click("#shift-dialog button[value=shift]", 0)
    new = editor.run(f"return {starts}")
    moved = editor.run(f"const m = (t) => t.split(':').reduce((s, p) => s * 60 + Number(p), 0); return {json.dumps(new)}.map((t, n) => Math.round((m(t) - m({json.dumps(old)}[n])) * 1000))")
    editor.check(moved[0] == 0 and set(moved[1:]) == {250}, ["shift", moved])
    # A time that is typed, and one that is none.
    editor.run("document.querySelectorAll('#cues input[data-part=start]')[1].select()")
    editor.run("document.querySelectorAll('#cues input[data-part=start]')[1].focus()")
    editor.keys("nonsense")
    editor.chord("tab")
    editor.check(editor.run(f"return {starts}")[1] == new[1], "nonsense is taken for a time")
    # A speaker's name counts everywhere; a hostile one injects nothing.
    editor.click("#speakers", 0)
    editor.click("#speaker-list input", 0)
    editor.run("document.querySelector('#speaker-list input').select()")
    editor.keys("Zoë <img src=x onerror=hacked=1>")
    editor.chord("escape")
    named = "Array.from(document.querySelectorAll('#cues select'), (s) => s.selectedOptions[0].text).filter((t) => t.startsWith('Zoë <img')).length"
    editor.check(editor.run(f"return {named}") > 0, "a speaker is not renamed")
    editor.check(not editor.run(f"return {HACKED}"), "a name became markup")
    # Finding and replacing, with a count; `$&` is text.
    editor.chord("control", "f")
    editor.run("document.getElementById('find-text').value = ''; document.getElementById('find-text').focus()")
    editor.keys("BY HAND")
    editor.check(editor.run("return document.getElementById('found').textContent") == "1 found", "nothing is found")
    editor.run("document.getElementById('replace-text').value = '$& <b>'")
    editor.click("#replace-all", 0)
    editor.check("typed $& <b>" in editor.texts()[0].replace("\n", " "), ["replace", editor.texts()[0]])
    editor.chord("escape")
    # Undo goes back through all of it.
    editor.put_cursor(0, 0)
    for _ in range(40):
        editor.chord("control", "z")
    editor.check(editor.comes_true(lambda: editor.texts() == before), ["undo of everything", editor.texts(), before])
    editor.check(editor.run("return document.querySelectorAll('#cues > li').length") == count, "undo leaves captions")
    editor.saved()


def rules_and_review(editor):
    editor.put_cursor(0, 0)
    editor.keys("far too many characters for such a short time, and for one line of a caption, too ")
    faults = editor.run("return document.querySelector('#cues li .faults').innerText")
    editor.check("at most" in faults, ["rules", faults])
    editor.chord("control", "z")
    suspects = editor.run("return document.getElementById('suspects').textContent")
    if suspects.startswith("No "):
        editor.problems.append("no suspect passage to go to")
        return
    editor.put_cursor(0, 0)
    editor.run("document.getElementById('click-plays').checked = false")
    editor.chord("alt", "n")
    now = editor.run("return document.getElementById('suspects').textContent")
    editor.check(now.startswith("Passage 1 of") and "left" in now, ["review", now])
    editor.check(editor.run("return document.activeElement.tagName") == "TEXTAREA", "the review does not go to a caption")
    editor.check(editor.run("return media.currentTime >= 0"), "the review does not go to the recording")
    # A click on a word goes to its time.
    editor.run("document.querySelectorAll('#cues textarea')[1].focus()")
    editor.put_cursor(1, 1)
    at = editor.run("document.querySelectorAll('#cues textarea')[1].dispatchEvent(new MouseEvent('click', { bubbles: true })); return media.currentTime")
    editor.check(at > 0.2, ["click on a word", at])
    editor.run("media.pause()")


def outage(editor, daemon):
    """The server is killed while somebody types: the page says so, keeps the text, and saves it later."""
    editor.put_cursor(0, 0)
    editor.keys("before ")
    editor.saved()
    daemon.kill()
    editor.put_cursor(0, 0)
    editor.keys("during ")
    editor.wait(f"{STATE} === 'failed'")
    words = editor.run("return document.getElementById('save-state').textContent")
    editor.check("kept in this browser" in words, ["outage", words])
    # The tab is closed, and opened again later.
    editor.go("about:blank")
    daemon.start()
    editor.open()
    editor.check(editor.texts()[0].startswith("during before "), ["recovered", editor.texts()[0]])
    editor.saved()
    editor.check(editor.on_server()["cues"][0]["text"].startswith("during before "), "what was recovered is not saved")
    # The tab stays.
    daemon.kill()
    editor.put_cursor(0, 0)
    editor.keys("alone ")
    editor.wait(f"{STATE} === 'failed'")
    daemon.start()
    editor.saved()
    editor.check(editor.on_server()["cues"][0]["text"].startswith("alone during before "), "the page does not save later")


def killed(editor, daemon):
    """Both the browser and the server are killed while somebody types; returns each character with its time."""
    editor.put_cursor(0, 0)
    typed = []
    for number in range(60):
        editor.keys(f"{number:02}.")
        typed.append((f"{number:02}.", time.monotonic()))
        time.sleep(0.04)
    end = time.monotonic()
    daemon.kill()
    kill_browser(editor)
    return [text for text, at in typed if at < end - 2]


def kill_browser(editor):
    """Kills the processes of this browser, which have its profile among their arguments."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if f"--user-data-dir={editor.profile}".encode() in (process / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:
            continue  # It has ended.


def two_editors(editor):
    one = editor.window()
    other = editor.ask("/window/new", {"type": "tab"})["handle"]
    editor.switch(other)
    editor.open()
    editor.wait("!document.getElementById('others').hidden")
    editor.put_cursor(1, 0)
    editor.keys("second tab ")
    editor.saved()
    editor.switch(one)
    editor.put_cursor(0, 0)
    editor.keys("first tab ")
    editor.wait("document.getElementById('conflict-dialog').open")
    editor.check(editor.nameless("#conflict-dialog") == [], ["conflict", editor.nameless("#conflict-dialog")])
    editor.click("#conflict-merge", 0)
    editor.saved()
    texts = editor.texts()
    editor.check("first tab " in texts[0] and "second tab " in texts[1], ["merged", texts[:2]])
    editor.wait("!document.getElementById('others').hidden")
    # The other tab has nothing unsaved: it is told.
    editor.switch(other)
    editor.wait("!document.getElementById('newer').hidden || document.hidden")
    editor.ask("/window", method="DELETE")
    editor.switch(one)


def name_first_speaker(editor, name):
    editor.click("#speakers", 0)
    editor.click("#speaker-list input", 0)
    editor.run("document.querySelector('#speaker-list input').select()")
    editor.keys(name)
    editor.chord("escape")


def accept(editor):
    editor.put_cursor(0, 0)
    editor.keys("Accepted by hand: ")
    name_first_speaker(editor, "Zoë O'Neil")
    editor.click("#accept", 0)
    editor.wait("document.getElementById('accepted-dialog').open")
    files = editor.run("return Array.from(document.querySelectorAll('#accepted-files li'), (f) => f.textContent)")
    editor.check(len(files) > 0, "no output was rendered")
    editor.chord("escape")
    return {"files": files, "texts": editor.texts()}


def lines(editor):
    """The server says with a saved draft that a line breaks badly, and a button breaks it better."""
    said = "document.querySelector('#cues li :is(.warnings, .faults)').parentElement"
    warned = f"{said}.querySelector('.warnings').innerText"
    better = "document.querySelector('#cues li .better')"
    editor.put_cursor(0, 0)
    editor.run("document.querySelector('#cues textarea').select()")
    editor.keys("We had no idea that it was over the")
    editor.chord("enter")
    editor.keys("house of my brother.")
    editor.wait(f"{warned}.includes('A line ends within a phrase')")
    shown = editor.run(f"return {better}.querySelector('.lines').innerText")
    editor.check(shown == "We had no idea that it was\nover the house of my brother.", ["better lines", shown])
    editor.check(editor.nameless("#cues li:first-child") == [], "the advice has a control without a name")
    # Other lines are another text: what is said of the former goes at once.
    editor.put_cursor(0, 0)
    editor.keys("x")
    editor.check(editor.run(f"return {warned} === '' && {better}.hidden"), "advice on a former text stays")
    editor.chord("control", "z")
    editor.put_cursor(0, 0)
    editor.run("document.querySelector('#cues textarea').select()")
    editor.keys("We had no idea that it was over the")
    editor.chord("enter")
    editor.keys("house of my brother.")
    editor.wait(f"!{better}.hidden")
    editor.click("#cues li .better button", 0)
    editor.check(editor.texts()[0] == shown, ["taken", editor.texts()[0]])
    editor.check(editor.run("return document.activeElement.tagName") == "TEXTAREA", "the cursor is lost")
    editor.saved()
    editor.check(editor.run(f"return {better}.hidden && {warned} === ''"), "good lines get advice")
    # A line that is too long.
    editor.put_cursor(0, 0)
    editor.run("document.querySelector('#cues textarea').select()")
    editor.keys("He would not tell me where he went, but I knew it was the theatre.")
    editor.wait(f"!{better}.hidden && {better}.querySelector('.lines').innerText.startsWith('He would not tell me where he went,')")
    for _ in range(20):
        editor.chord("control", "z")
    editor.saved()


def for_documentation(editor, base, job, pictures):
    """The pictures that stand in docs/how-to/correct-transcripts.md."""
    editor.size(1000, 940)
    editor.go(f"{base}/jobs/{job}/edit")
    editor.wait("document.querySelectorAll('#cues textarea').length >= 6")
    name_first_speaker(editor, "Ann Miller")
    editor.run("document.getElementById('click-plays').click()")
    editor.chord("alt", "n")
    editor.run("document.querySelectorAll('#cues textarea')[3].select()")
    editor.put_cursor(3, 0)
    editor.run("document.querySelectorAll('#cues textarea')[3].select()")
    editor.keys("And what will it cost the")
    editor.chord("enter")
    editor.keys("city, all in all?")
    editor.wait("!document.querySelectorAll('#cues .better')[3].hidden")
    editor.saved()
    editor.run("document.getElementById('click-plays').click(); document.querySelectorAll('#cues textarea')[3].blur(); media.currentTime = 10.6")
    editor.wait("document.querySelector('#cues .said')")
    for scheme in ("light", "dark"):
        editor.media(prefers_color_scheme=scheme)
        editor.run("scrollTo(0, 0)")
        editor.picture(pictures / f"documentation-{scheme}.png")
    editor.media(prefers_color_scheme="light")
    editor.size(390, 800)
    editor.run("document.querySelectorAll('#cues li')[3].scrollIntoView({ block: 'center' })")
    editor.picture(pictures / "documentation-narrow.png")
    editor.media()
    editor.size(1000, 900)


def discard(editor):
    before = editor.texts()[0]
    editor.put_cursor(0, 0)
    editor.keys("not wanted ")
    editor.saved()
    editor.click("#discard", 0)
    editor.click("#discard-yes", 0)
    editor.wait("!document.getElementById('previous').hidden")
    editor.check(editor.texts()[0] == before, ["discard", editor.texts()[0], before])
    editor.open()
    editor.click("#previous button", 0)
    editor.wait(f"{TEXTS}[0].startsWith('not wanted ')")
    editor.click("#discard", 0)
    editor.click("#discard-yes", 0)
    editor.wait(f"!{TEXTS}[0].startsWith('not wanted ')")


def long_transcript(editor, base, job):
    editor.go(f"{base}/jobs/{job}/edit")
    editor.wait("document.querySelectorAll('#cues > li').length >= 2000 && document.querySelector('#cues textarea')")
    filled = editor.run("return document.querySelectorAll('#cues textarea').length")
    editor.check(filled < 200, ["captions with controls", filled])
    return editor.run("""
        const text = document.querySelector('#cues textarea');
        const begun = performance.now();
        for (let n = 0; n < 50; n += 1) { text.value += 'x'; text.dispatchEvent(new InputEvent('input', { bubbles: true })); }
        return { key_ms: (performance.now() - begun) / 50, elements: document.querySelectorAll('*').length };""")


def main():
    command, base, job, long, meeting, pictures = sys.argv[1:]
    daemon, pictures = Daemon(json.loads(command), base), Path(pictures)
    daemon.start()
    read, profile = {}, tempfile.mkdtemp()
    editor = Editor(profile, f"{base}/jobs/{job}/edit")
    try:
        editor.size(1000, 900)
        editor.open()
        whole_page(editor, pictures)
        operations(editor)
        rules_and_review(editor)
        lines(editor)
        discard(editor)
        two_editors(editor)
        read["log"] = editor.errors()
        outage(editor, daemon)
        read["refused"] = [line for line in editor.log() if "Failed to load resource" not in line and "ERR_" not in line]
        read["accepted"] = accept(editor)
        if long != "0":
            read["long"] = long_transcript(editor, base, long)
            editor.open()
        for_documentation(editor, base, meeting, pictures)
        read["log"] += editor.errors()
        editor.open()
        kept = killed(editor, daemon)
        daemon.start()
        with urllib.request.urlopen(f"{base}/jobs/{job}/transcript.json", timeout=30) as answer:
            draft = json.load(answer)["draft"]
        text = draft["cues"][0]["text"] if draft else ""
        editor.check(kept and "".join(kept) in text, ["killed", "".join(kept)[-30:], text[-60:]])
        read["problems"] = editor.problems
        print(json.dumps(read))
    finally:
        kill_browser(editor)
        editor.driver.kill()
        daemon.kill()


if __name__ == "__main__":
    main()
