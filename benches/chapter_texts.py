"""Writes the texts that `cargo bench --bench chapters -- OUT` measures: OUT/SOURCE/NAME.txt, a sentence a line, `# ` before
the heading of a section. Every second text is left out: the settings of the chapters were chosen on those.

usage: chapter_texts.py OUT [handbook=FOLDER] [reference=FOLDER] [papers=FOLDER]

handbook: /usr/share/doc/debian-handbook/html/en-US (Debian's package debian-handbook)
reference: /usr/share/doc/debian-reference-en/docs (debian-reference-en; nothing was chosen on it, all of it is taken)
papers: aclsum/dataset/paper_jsons (in the package aclsum 0.1.2 on PyPI)
"""

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path


def sentences(text):
    text = re.sub(r"\s+", " ", text).strip()
    found = []
    for one in re.split(r"(?<=[.!?])[\"”)']*\s+(?=[\"“(']*[A-Z0-9])", text):
        if found and re.search(r"\b(Mr|Mrs|Dr|St|et al|i\.e|e\.g|Fig|Sec|Eq|vs|cf)\.$", found[-1]):
            found[-1] += " " + one
        else:
            found.append(one)
    # Formulas and commands are not said.
    letters = lambda one: sum(c.isalpha() or c == " " for c in one) > 0.75 * len(one)
    return [one for one in found if len(re.findall(r"[A-Za-z]{2,}", one)) >= 3 and letters(one)]


class Page(HTMLParser):
    UNSPOKEN = ("pre", "script", "style", "table", "dl")

    def __init__(self, path):
        super().__init__()
        self.blocks, self.depth, self.heading, self.text = [], 0, None, ""
        self.feed(path.read_text(errors="replace"))
        self.flush()

    def flush(self):
        if self.heading is None:
            if self.text.strip():
                self.blocks.append(("p", self.text.strip()))
            self.text = ""

    def handle_starttag(self, tag, attrs):
        self.depth += tag in self.UNSPOKEN
        if tag in ("p", "div", "li", "dd"):
            self.flush()
        if tag in ("h1", "h2", "h3"):
            self.heading, self.text = tag, ""

    def handle_endtag(self, tag):
        self.depth = max(0, self.depth - (tag in self.UNSPOKEN))
        if tag == self.heading:
            self.blocks.append((tag, self.text.strip()))
            self.heading, self.text = None, ""
        if tag in ("p", "div", "li", "dd"):
            self.flush()

    def handle_data(self, data):
        if not self.depth:
            self.text += " " + data


def plain(heading):
    return re.sub(r"(Chapter )?\d+(\.\d+)*\.?", "", heading.replace("\xa0", " ")).strip()


def handbook(folder):
    foreign = r"Download the ebook|Administrator.s Handbook|Product Site|^Prev|^Next|Documentation Site"
    for chapter in sorted(folder.glob("*.html")):
        if chapter.name.startswith("sect") or chapter.name in ("index.html", "preface.html", "foreword.html"):
            continue
        links = re.findall(r'class="section"><a href="(sect\.[^"#]+\.html)"', chapter.read_text())
        sections = []
        for link in dict.fromkeys(links):
            blocks = Page(folder / link).blocks
            heading = next((plain(text) for tag, text in blocks if tag != "p"), "")
            text = " ".join(text for tag, text in blocks if tag == "p" and not re.search(foreign, text))
            sections.append((heading, sentences(text)))
        yield chapter.stem, [one for one in sections if len(one[1]) >= 5]


def reference(folder):
    for chapter in sorted(folder.glob("ch*.en.html")):
        sections = []
        for number, (tag, text) in enumerate(Page(chapter).blocks):
            if tag == "h2" and number:
                sections.append((plain(text), []))
            elif tag == "p" and sections:
                sections[-1][1].append(text)
        sections = [(heading, sentences(" ".join(texts))) for heading, texts in sections]
        yield chapter.name.split(".")[0], [one for one in sections if len(one[1]) >= 5]


def papers(folder):
    for path in sorted(folder.glob("*.json"))[1::2]:
        sections = {}
        for block in json.loads(path.read_text())["pdf_parse"]["body_text"]:
            number = block.get("sec_num") or ""
            top = number.split(".")[0]
            if top.isdigit():
                heading, texts = sections.setdefault(top, [block["section"] if number == top else "", []])
                texts.append(block["text"])
                if number == top and not heading:
                    sections[top][0] = block["section"]
        sections = [(heading, sentences(" ".join(texts))) for heading, texts in sections.values()]
        yield path.stem, [one for one in sections if len(one[1]) >= 3]


def write(out, source, texts):
    folder = out / source
    folder.mkdir(parents=True, exist_ok=True)
    for name, sections in texts:
        lines = [line for heading, said in sections for line in ["# " + heading, *said]]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


def main(out, *sources):
    read = {"handbook": handbook, "reference": reference, "papers": papers}
    for source in sources:
        name, folder = source.split("=", 1)
        texts = [one for one in read[name](Path(folder)) if len(one[1]) >= 2]
        write(Path(out), name, texts[1::2] if name == "handbook" else texts)


if __name__ == "__main__":
    main(*sys.argv[1:])
