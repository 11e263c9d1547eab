"""Uses the pages of a large queue in Chromium as a person does, and prints how long each view takes; or leaves the overview
open, and prints what that costs. Ends with a status other than 0 if something is not as it should be.

usage: large_queue.py PICTURES use BASE EXPECTED
       large_queue.py PICTURES open BASE PID OTHER MINUTES
PICTURES: a folder for pictures of the pages; BASE: the address of an idle daemon; EXPECTED: a JSON object with the number of
its `jobs`, those that are `failed`, and of these those that the service `refused`; PID: the process of the daemon; OTHER: that
of a daemon with the same queue that nobody looks at
"""
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

from player import CONTRAST, Reader

# The times of the present page, in milliseconds since the person asked for it.
TIMES = """
    return new Promise((done) => {
      const read = () => requestAnimationFrame(() => setTimeout(() => {
        let largest = 0;
        const answer = () => {
          const open = performance.getEntriesByType('navigation')[0];
          const first = performance.getEntriesByName('first-contentful-paint')[0];
          done({ server: open.responseStart - open.requestStart, received: open.responseEnd - open.startTime,
            painted: Math.max(first ? first.startTime : 0, largest), bytes: open.decodedBodySize,
            elements: document.querySelectorAll('*').length });
        };
        new PerformanceObserver((list) => { for (const entry of list.getEntries()) largest = Math.max(largest, entry.renderTime || entry.startTime); })
          .observe({ type: 'largest-contentful-paint', buffered: true });
        setTimeout(answer, 50);
      }));
      if (document.readyState === 'complete') read(); else addEventListener('load', read);
    });"""

# What stands outside of the box that it belongs to, and labels of charts that cover each other or are too small.
LAYOUT = """
    const wrong = [];
    const say = (element) => element.textContent.trim().slice(0, 60);
    for (const one of document.querySelectorAll('.figure *, .card *, .facet *, h1, p, dd, button, th, td')) {
      const box = one.getBoundingClientRect();
      if (!one.checkVisibility() || box.width === 0) continue;
      const within = one.closest('.scroll') ? null : one.closest('.figure, .card, .facet') || document.body;
      if (within && box.right > within.getBoundingClientRect().right + 1) wrong.push(['outside', one.tagName, say(one)]);
      if (one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).overflowX === 'visible')
        wrong.push(['wider than its box', one.tagName, say(one)]);
    }
    for (const chart of document.querySelectorAll('.chart svg')) {
      const frame = chart.getBoundingClientRect();
      const texts = Array.from(chart.querySelectorAll('text'));
      const boxes = texts.map((text) => text.getBoundingClientRect());
      boxes.forEach((a, at) => {
        if (a.left < frame.left - 1 || a.right > frame.right + 1) wrong.push(['outside the chart', say(texts[at])]);
        boxes.slice(at + 1).forEach((b, on) => {
          if (a.left < b.right && b.left < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom)
            wrong.push(['labels on each other', say(texts[at]), say(texts[at + 1 + on])]);
        });
        const size = parseFloat(getComputedStyle(texts[at]).fontSize) * frame.width / chart.viewBox.baseVal.width;
        if (size < 9) wrong.push(['too small to be read', say(texts[at]), size]);
      });
    }
    return wrong;"""


class Person(Reader):
    def __init__(self, profile, base, pictures):
        super().__init__(profile)
        self.base, self.pictures = base, pictures
        self.wrong = []

    def follow(self, act):
        """Does what leads to another page, and waits for that page."""
        self.run("window.before = true")
        act()
        self.wait("window.before === undefined && document.readyState === 'complete'")

    def link(self, selector, text=None):
        """Follows the first link with a text."""
        links = self.run(f"return Array.from(document.querySelectorAll({json.dumps(selector)}), (e) => e.textContent.trim())")
        at = 0 if text is None else links.index(text)
        self.follow(lambda: self.click(selector, at))

    def text(self, selector):
        return self.run(f"return document.querySelector({json.dumps(selector)}).innerText")

    def number(self, selector):
        """The first number that an element says; digits are grouped by thin spaces."""
        return int(re.search(r"\d[\d\u202f]*", self.text(selector)).group().replace("\u202f", ""))

    def check(self, view, holds, words):
        if not holds:
            self.wrong.append([view, words])

    def names(self):
        return self.run("return Array.from(document.querySelectorAll('table.jobs td.name'), (e) => e.innerText)")

    def view(self, name):
        """Prints the times of the present page, looks at it in each size and scheme, and takes pictures."""
        times = self.run(TIMES)
        # A page that nobody sees does not renew itself, and stays as it is while it is examined.
        self.run("Object.defineProperty(document, 'hidden', { get: () => true })")
        print(f"{name:<34} {times['server']:>8.0f} {times['received']:>9.0f} {times['painted']:>8.0f} {times['bytes'] / 1000:>8.0f} {times['elements']:>9}", flush=True)
        self.check(name, times["painted"] > 0, "the time of painting is not known")
        self.check(name, self.run("return document.querySelectorAll('h1').length") == 1, "not one heading")
        file = re.sub(r"\W+", "-", name)
        for control in self.unlabelled():
            self.wrong.append([name, "no name", control])
        for width, height in ((1200, 900), (360, 740)):
            self.size(width, height)
            for scheme in ("light", "dark"):
                self.media(prefers_color_scheme=scheme)
                self.wrong += [[name, scheme, low] for low in self.run(CONTRAST)]
                self.picture(self.pictures / f"{file}-{width}-{scheme}.png")
                if self.run("const charts = document.querySelector('.charts'); if (charts) charts.scrollIntoView(); return charts !== null"):
                    self.picture(self.pictures / f"{file}-charts-{width}-{scheme}.png")
                    self.run("scrollTo(0, 0)")
            wide = self.run(f"return document.documentElement.scrollWidth - {width}")
            self.check(name, wide <= 0, f"{wide} pixels too wide for {width}")
            self.wrong += [[name, width, *one] for one in self.run(LAYOUT)]
        self.media()
        self.size(1200, 900)
        self.wrong += [[name, line] for line in self.log() if "favicon" not in line]


def prepared(person):
    """Opens the overview, and waits until the table behind figures and charts is there."""
    begun = time.monotonic()
    person.go(f"{person.base}/")
    while person.run("return document.querySelectorAll('main > [role=status]').length"):
        if time.monotonic() > begun + 300:
            sys.exit("the table of jobs does not become ready")
        time.sleep(0.5)
        person.go(f"{person.base}/")
    print(f"the charts are there {time.monotonic() - begun:.1f} s after the overview was first asked for")


def use(person, expected):
    prepared(person)
    person.go(f"{person.base}/")
    print(f"{'view: ms, kB':<34} {'server':>8} {'received':>9} {'painted':>8} {'kB':>8} {'elements':>9}")
    person.view("overview")
    person.link("header nav a", "Jobs")
    person.view("jobs")
    person.check("jobs", person.number("main > p strong") == expected["jobs"], person.text("main > p"))
    person.link("table.jobs th a", "Recording")
    first = person.names()
    person.view("jobs by name")
    person.link("nav.pages a", "Next page")
    person.check("next page", person.names()[0] > first[-1] or person.names()[0] < first[-1], "the next page is the same")
    person.check("next page", not set(first) & set(person.names()), "a job is on two pages")
    person.view("next page")
    there = person.run("return location.href")
    person.ask("/back")
    person.wait(f"location.href !== {json.dumps(there)} && document.readyState === 'complete'")
    person.check("back", person.names() == first, "the page before is another one")
    person.link(".facet a", "radio")
    person.view("one source")
    person.link("table.jobs th a", "Length")
    person.view("one source by length")
    person.link("header nav a", "Jobs")
    person.type("input[name=text]", "shelf-017 box-003")
    person.follow(lambda: person.click("form.filter button", 0))
    person.check("words in the name", all("shelf-017" in name and "box-003" in name for name in person.names()), person.names())
    person.view("words in the name")
    one = person.names()[0]
    person.link("table.jobs td.name a")
    person.check("job", person.text("h1") == one, person.text("h1"))
    person.view("job")
    failures(person, expected)
    for name, path in [("sources", "/sources"), ("plan", "/plan"), ("search", "/search?q=evening"), ("sign-in", "/sign-in"), ("nothing", "/jobs?text=xylophone")]:
        person.go(person.base + path)
        person.view(name)


def failures(person, expected):
    """From the overview to what failed, by fault and by reason; then the question about all of them."""
    person.go(f"{person.base}/")
    person.link(".figure.failed a")
    person.check("failed", person.number("main > p strong") == expected["failed"], person.text("main > p"))
    person.view("failed")
    person.link(".facet a", "refused")
    person.check("refused", person.number("main > p strong") == expected["refused"], person.text("main > p"))
    person.view("refused")
    listed = person.run("return location.href")
    person.click("details.bulk summary", 0)
    person.follow(lambda: person.click("details.bulk button", 0))
    asked = [person.number("h1"), person.number("form.actions button")]
    person.check("all matching", asked == [expected["refused"]] * 2, asked)
    person.view("all matching")
    person.link("form.actions a")
    person.check("all matching", person.run("return location.href") == listed, "not back at the list")
    person.check("all matching", person.number("main > p strong") == expected["refused"], "something happened though it was not confirmed")
    person.run("const facets = document.querySelectorAll('.facet'); facets[facets.length - 1].querySelector('a').id = 'reason'")
    person.link("#reason")
    person.check("one reason", 0 < person.number("main > p strong") < expected["refused"], person.text("main > p"))
    person.view("one reason")


def spent(pid):
    """The processor time of a process in seconds, and its memory in MB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK"), int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) / 1000


def tab(driver):
    """The memory of the process of the page in MB: the largest renderer below chromedriver."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[stat.parent.name] = stat.read_text().rsplit(")", 1)[1].split()[1]
        except OSError:
            pass  # it has ended

    def is_below(pid):
        return pid == str(driver) or (pid in parents and is_below(parents[pid]))

    sizes = [0]
    for pid in filter(is_below, parents):
        if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes():
            sizes.append(spent(pid)[1])
    return max(sizes)


def idle(pid):
    """Waits until a daemon has used no processor time for ten seconds."""
    begun = since = time.monotonic()
    last = spent(pid)[0]
    while time.monotonic() < since + 10:
        if time.monotonic() > begun + 300:
            sys.exit(f"the daemon {pid} does not come to rest")
        time.sleep(1)
        if (now := spent(pid)[0]) > last:
            last, since = now, time.monotonic()


def leave_open(person, pid, other, minutes):
    for daemon in (pid, other):
        idle(daemon)
    before = spent(pid)
    prepared(person)
    idle(pid)
    print(f"the table of jobs took {spent(pid)[0] - before[0]:.1f} s of processor time; memory {before[1]:.0f} MB before it, {spent(pid)[1]:.0f} MB with it", flush=True)
    person.go(f"{person.base}/")
    person.wait("document.querySelectorAll('.chart').length > 0")
    renewals = "return Number(sessionStorage.getItem('scribed-renewals'))"
    begun, first = time.monotonic(), [spent(pid), spent(other)]
    before = person.run(renewals)
    print(f"{'minutes':>7} {'renewals':>8} {'s of processor':>14} {'% of a core':>11} {'daemon MB':>9} {'unseen: %':>9} {'MB':>6} {'tab MB':>6}")
    step = max(1, minutes // 10)
    for end in list(range(step, minutes, step)) + [minutes]:
        time.sleep(max(0, begun + end * 60 - time.monotonic()))
        now, passed = [spent(pid), spent(other)], time.monotonic() - begun
        used = [one[0] - then[0] for one, then in zip(now, first)]
        print(f"{end:>7} {person.run(renewals) - before:>8} {used[0]:>14.2f} {used[0] / passed * 100:>11.4f} {now[0][1]:>9.0f} {used[1] / passed * 100:>9.4f} {now[1][1]:>6.0f} {tab(person.driver.pid):>6.0f}", flush=True)
    share = (used[0] - used[1]) / passed * 100
    print(f"the open page costs {share:.4f} % of a core; the daemon's memory grew by {now[0][1] - first[0][1]:.0f} MB, without a page by {now[1][1] - first[1][1]:.0f} MB")
    person.check("overview", share < 0.1, f"it costs {share:.4f} % of a core, not less than 0.1 %")
    person.check("overview", person.run(renewals) - before >= minutes - 2, "the page was not renewed each minute")
    person.wrong += [["overview", line] for line in person.log() if "favicon" not in line]


def main():
    pictures, what, base, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as profile:
        person = Person(profile, base, Path(pictures))
        try:
            person.size(1200, 900)
            if what == "use":
                use(person, json.loads(more[0]))
            else:
                leave_open(person, *map(int, more))
            for one in person.wrong:
                print("WRONG", json.dumps(one, ensure_ascii=False))
        finally:
            person.close()
    sys.exit(1 if person.wrong else 0)


if __name__ == "__main__":
    main()
