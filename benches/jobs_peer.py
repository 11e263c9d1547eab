"""What somebody would write instead: uploads, creates, reads and writes, with no queue and no syncs."""

import asyncio
import json
import pathlib
import sys

import aiohttp

HEADERS = {"x-service-key": "k"}


async def one(session, base, path):
    form = aiohttp.FormData()
    form.add_field("audio", path.read_bytes(), filename=path.name, content_type="application/octet-stream")
    async with session.post(f"{base}/v2/upload", data=form) as answer:
        audio_url = (await answer.json())["audio_url"]
    async with session.post(f"{base}/v2/pre-recorded", json={"audio_url": audio_url}) as answer:
        job = (await answer.json())["id"]
    while True:
        async with session.get(f"{base}/v2/pre-recorded/{job}") as answer:
            record = await answer.json()
        if record["status"] == "done":
            break
        await asyncio.sleep(0.05)
    write(path, record)


def stamp(seconds, mark):
    millis = round(seconds * 1000)
    hours, rest = divmod(millis, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def write(path, record):
    utterances = record["result"]["transcription"]["utterances"]
    path.with_suffix(".en.txt").write_text("\n".join(u["text"] for u in utterances) + "\n")
    path.with_suffix(".en.json").write_text(json.dumps(record))
    for kind, mark, head in (("srt", ",", ""), ("vtt", ".", "WEBVTT\n\n")):
        cues = (
            f"{n}\n{stamp(u['start'], mark)} --> {stamp(u['end'], mark)}\n{u['text']}\n"
            for n, u in enumerate(utterances, 1)
        )
        path.with_suffix(f".en.{kind}").write_text(head + "\n".join(cues))


async def main(inbox, base, concurrency):
    paths = sorted(pathlib.Path(inbox).glob("*.wav"))
    turns = asyncio.Semaphore(int(concurrency))
    connector = aiohttp.TCPConnector(limit=int(concurrency))
    async with aiohttp.ClientSession(connector=connector, headers=HEADERS) as session:

        async def turn(path):
            async with turns:
                await one(session, base, path)

        await asyncio.gather(*(turn(path) for path in paths))


asyncio.run(main(*sys.argv[1:]))
