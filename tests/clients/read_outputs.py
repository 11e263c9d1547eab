"""Reads outputs of scribed with programs of others, and prints what they read as one JSON object.

usage: read_outputs.py FOLDER STEM    reads FOLDER/STEM.ttml, .vtt, .srt, .ass, .docx and .html
"""
import json
import logging
import sys
import xml.etree.ElementTree as et
from pathlib import Path


def ttml(path):
    """Read by ttconv, and checked against the render model of IMSC."""
    import ttconv.imsc.reader as imsc
    import imschrm.doc_sequence
    import imschrm.hrm
    from ttconv.isd import ISD

    problems = []

    class Problems(logging.Handler):
        def emit(self, record):
            problems.append(record.getMessage())

    logging.getLogger().addHandler(Problems(logging.WARNING))
    document = imsc.to_model(et.parse(path))
    texts = []
    for time in ISD.significant_times(document):
        found = []
        isd = ISD.from_model(document, time)
        for region in isd.iter_regions() if isd is not None else []:
            for element in region.dfs_iterator():
                if hasattr(element, "get_text") and element.get_text():
                    found.append(element.get_text())
        if found:
            texts.append(" ".join(found))
    errors = []

    class Errors(imschrm.hrm.EventHandler):
        def error(self, msg, doc_index, time_offset, available_time, stats):
            errors.append(msg)

    documents = [(0, None, path.read_text(encoding="utf-8"))]
    imschrm.hrm.validate(imschrm.doc_sequence.iter_isd(iter(documents)), Errors(), 0)
    about = et.parse(path).find(".//{http://www.w3.org/ns/ttml#metadata}desc")
    return {
        "language": document.get_lang(),
        "texts": texts,
        "problems": problems,
        "render_model": errors,
        "about": about.text if about is not None else None,
    }


def vtt(path):
    import pycaption
    import webvtt

    captions = [caption for caption in webvtt.read(path)]
    read = pycaption.WebVTTReader().read(path.read_text(encoding="utf-8"))
    return {
        "texts": [caption.text.replace("\n", " ") for caption in captions],
        "voices": [caption.voice for caption in captions],
        "pycaption": [c.get_text().replace("\n", " ") for c in read.get_captions(read.get_languages()[0])],
    }


def subtitles(path):
    import pysubs2

    read = pysubs2.load(str(path), encoding="utf-8")
    return {
        "texts": [line.plaintext.replace("\n", " ").replace("\u2060", "") for line in read],
        "names": [line.name for line in read],
        "times": [[line.start, line.end] for line in read],
    }


def docx(path):
    import docx as reader

    document = reader.Document(str(path))
    return {
        "title": document.core_properties.title,
        "about": document.core_properties.comments,
        "paragraphs": [[paragraph.style.name, paragraph.text] for paragraph in document.paragraphs],
    }


def html(path):
    import html5lib

    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree = parser.parse(path.read_text(encoding="utf-8"))
    media = tree.find(".//*[@id='media']")
    external = [
        f"{element.tag} {name}"
        for element in tree.iter()
        if isinstance(element.tag, str)
        for name in element.attrib
        if name in ("src", "href", "srcset", "data", "action") and element is not media or name.startswith("on")
    ]
    return {
        "media": [media.tag, media.get("src")],
        "external": external,
        "scripts": len(tree.findall(".//script")),
        "about": [meta.get("content") for meta in tree.findall(".//meta[@name='description']")],
        "policy": tree.find(".//meta[@http-equiv]").get("content"),
        "lines": ["".join(line.itertext()) for line in tree.findall(".//section/p")],
        "starts": [button.get("data-start") for button in tree.findall(".//section//button")],
    }


def main():
    at = lambda ext: Path(sys.argv[1]) / f"{sys.argv[2]}.{ext}"
    print(
        json.dumps(
            {
                "ttml": ttml(at("ttml")),
                "vtt": vtt(at("vtt")),
                "srt": subtitles(at("srt")),
                "ass": subtitles(at("ass")),
                "docx": docx(at("docx")),
                "html": html(at("html")),
            }
        )
    )


main()
