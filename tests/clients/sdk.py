"""The official Python client, as it is, against a running `scribed serve`.

What it is told is in the environment: SERVICE_URL, SERVICE_KEY, SPEECH (a recording) and LONG (a longer one).
The last lines on stdout are what was heard in SPEECH, asked for in two ways. Anything that is not as the client's own types have it
ends this with an error.
"""

import asyncio
import dataclasses
import functools
import http.server
import json
import os
import pathlib
import sys
import threading
import types
import typing
import warnings

from gladiaio_sdk import GladiaClient
from gladiaio_sdk.network.http_client import HttpError
from gladiaio_sdk.v2.live.async_client import LiveV2AsyncClient
from gladiaio_sdk.v2.live.client import LiveV2Client
from gladiaio_sdk.v2.prerecorded.async_client import PreRecordedV2AsyncClient
from gladiaio_sdk.v2.prerecorded.client import PreRecordedV2Client
from gladiaio_sdk.v2.prerecorded.generated_types import PreRecordedV2Response

# The client warns where it is given null for what must be there.
warnings.simplefilter("error", RuntimeWarning)

URL, KEY = os.environ["SERVICE_URL"], os.environ["SERVICE_KEY"]
SPEECH, LONG = pathlib.Path(os.environ["SPEECH"]), pathlib.Path(os.environ["LONG"])

# Everything that the client has a type for, but what it types wrongly: the service refuses an array of
# arrays for audio_to_llm_config.prompts, as the public one does.
ALL = {
    "subtitles": True,
    "subtitles_config": {"formats": ["srt", "vtt"], "maximum_characters_per_row": 30},
    "sentences": True,
    "punctuation_enhanced": True,
    "diarization": True,
    "diarization_config": {"number_of_speakers": 1},
    "translation": True,
    "translation_config": {"target_languages": ["en", "fr"]},
    "summarization": True,
    "named_entity_recognition": True,
    "sentiment_analysis": True,
    "audio_to_llm": True,
    "custom_spelling": True,
    "custom_spelling_config": {"spelling_dictionary": {"young": ["yung"]}},
    "custom_vocabulary": True,
    "custom_vocabulary_config": {"vocabulary": ["exposed", {"value": "young", "intensity": 0.4}]},
    "name_consistency": True,
    "structured_data_extraction": True,
    "display_mode": True,
    "language_config": {"languages": ["en"], "code_switching": False},
    "custom_metadata": {"shelf": "A 1", "number": 7},
}


# Live sessions are no part of the service.
SESSIONS = {"start_session", "connect_session"}
CALLED = set()


def offered(kind):
    """The methods that a client offers; from now on each call is remembered."""
    names = [name for name, method in vars(kind).items() if callable(method) and not name.startswith("_")]
    for name in names:
        setattr(kind, name, remembered(f"{kind.__name__}.{name}", getattr(kind, name)))
    return {f"{kind.__name__}.{name}" for name in names if name not in SESSIONS}


def remembered(name, method):
    @functools.wraps(method)
    def call(*arguments, **options):
        CALLED.add(name)
        return method(*arguments, **options)

    return call


def check(value, kind, where):
    """Fails unless a value is of the type that the client says it is of, all the way down."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return
    if origin in (typing.Union, types.UnionType):
        check_any(value, inner, where)
    elif origin is typing.Literal:
        assert value in inner, f"{where} is {value!r}, none of {inner}"
    elif origin is list:
        assert type(value) is list, f"{where} is no list: {value!r}"
        for number, one in enumerate(value):
            check(one, inner[0], f"{where}[{number}]")
    elif origin is dict:
        assert type(value) is dict, f"{where} is no object: {value!r}"
        for key, one in value.items():
            check(one, inner[1], f"{where}.{key}")
    elif dataclasses.is_dataclass(kind):
        assert type(value) is kind, f"{where} is no {kind.__name__}: {value!r}"
        for name, kind_of_field in typing.get_type_hints(kind).items():
            if not name.startswith("_") and name != "dataclass_json_config":
                check(getattr(value, name), kind_of_field, f"{where}.{name}")
    elif kind is float:
        assert type(value) in (int, float), f"{where} is no number: {value!r}"
    else:
        assert type(value) is kind, f"{where} is no {kind.__name__}: {value!r}"


def check_any(value, kinds, where):
    if value is None and type(None) in kinds:
        return
    wrong = []
    for kind in kinds:
        if kind is not type(None):
            try:
                return check(value, kind, where)
            except AssertionError as error:
                wrong.append(str(error))
    raise AssertionError("; ".join(wrong))


def checked(value):
    check(value, type(value), type(value).__name__)
    return value


def the_check_can_fail(record):
    """A record that is wrong in one place is found out."""
    said = json.loads(record.to_json())
    said["result"]["transcription"]["utterances"][0]["words"][0]["start"] = "soon"
    try:
        checked(PreRecordedV2Response.from_dict(said))
    except (AssertionError, ValueError) as error:
        assert "start" in str(error) or "soon" in str(error), error
    else:
        raise AssertionError("a time that is no number was not noticed")


def client(key=KEY):
    return GladiaClient(api_key=key, api_url=URL)


def refused(status, call, *arguments):
    """The client's error, which must have this status and words of the service."""
    try:
        answer = call(*arguments)
    except HttpError as error:
        assert error.status == status, f"{error.status}, not {status}: {error}"
        assert error.request_id.startswith("G-"), error
        assert error.response_body["message"], error
        return error
    raise AssertionError(f"not refused with {status}: {answer!r}")


def serve(folder):
    """The address of a server for the files of a folder."""
    handler = functools.partial(Quiet, directory=folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def upload(own):
    uploaded = checked(own.upload_file(SPEECH))
    found = uploaded.audio_metadata
    assert uploaded.audio_url == f"{URL}/file/{found.id}"
    assert (found.filename, found.extension) == (SPEECH.name, "wav")
    assert found.size == SPEECH.stat().st_size and found.number_of_channels == 1
    return uploaded


def waiting(own, uploaded):
    """While a long one is worked on, the next one waits: what can be done with it, and what cannot."""
    first = checked(own.create({"audio_url": own.upload_file(LONG).audio_url}))
    created = checked(own.create({**ALL, "audio_url": uploaded.audio_url}))
    assert created.result_url == f"{URL}/v2/pre-recorded/{created.id}"
    audio = own.get_file(created.id)
    record = checked(own.get(created.id))
    assert record.status == "queued", record.status
    assert (record.result, record.completed_at, record.error_code) == (None, None, None)
    assert audio == SPEECH.read_bytes(), "the audio comes back as it went"
    refused(403, own.delete, created.id)
    checked(own.poll(first.id, interval=0.05))
    return created


def done(own, created, uploaded):
    record = checked(own.poll(created.id, interval=0.05))
    the_check_can_fail(record)
    assert (record.status, record.kind, record.version) == ("done", "pre-recorded", 2)
    assert record.request_id == f"G-{record.id[:8]}" and record.completed_at > record.created_at
    assert record.custom_metadata == ALL["custom_metadata"]
    assert record.file.id == uploaded.audio_metadata.id and record.file.filename == SPEECH.name
    sent, echo = {**ALL, "audio_url": uploaded.audio_url}, record.request_params.to_dict()
    for name in sent.keys() - {"custom_metadata"}:
        assert holds(echo[name], sent[name]), (name, echo[name], sent[name])
    amounts = record.result.metadata
    assert amounts.billing_time == amounts.audio_duration == round(record.file.audio_duration, 3)
    said = record.result.transcription
    assert said.full_transcript == " ".join(one.text for one in said.utterances)
    for one in said.utterances:
        assert one.words and one.start == one.words[0].start and one.end == one.words[-1].end
    assert [one.format for one in said.subtitles] == ["srt", "vtt"]
    assert said.sentences == [record.result.sentences]
    assert said.sentences[0].results == [one.text for one in said.utterances]
    same, french = record.result.translation.results
    assert (same.full_transcript, same.error) == (said.full_transcript, None)
    assert french.error.status_code == 501
    assert {one.speaker for one in said.utterances} == {0}
    assert record.result.diarization is None or record.result.diarization.success
    summary = record.result.summarization
    assert summary.success and summary.results == said.full_transcript, "a short transcript is its own summary"
    entities, sentiments = record.result.named_entity_recognition, record.result.sentiment_analysis
    assert entities.success and entities.error is None and entities.is_empty == (not entities.results), entities
    assert sentiments.success and sentiments.error is None and not sentiments.is_empty, sentiments
    assert own.get_file(created.id) == SPEECH.read_bytes(), "the audio is there after the end too"
    # One upload serves several creates.
    options = {"audio_url": uploaded.audio_url, "custom_metadata": {"way": "again"}}
    same = checked(own.create_and_poll(options, interval=0.05))
    assert (same.status, same.file.id) == ("done", record.file.id)
    assert own.delete(same.id) is True
    assert own.get_file(record.id) == SPEECH.read_bytes(), "another transcription has it"
    return record


def holds(echo, sent):
    if isinstance(sent, dict):
        return all(holds(echo[key], value) for key, value in sent.items())
    # The client makes objects of all words of a vocabulary.
    return echo == sent or isinstance(sent, list) and len(echo) == len(sent)


def other_ways(own):
    """By path, by an open file, and by an address that the service fetches from."""
    by_path = own.transcribe(str(SPEECH), interval=0.05)
    with SPEECH.open("rb") as file:
        by_file = own.transcribe(file, {"custom_metadata": {"way": "file"}}, interval=0.05)
    address = f"{serve(SPEECH.parent)}/{SPEECH.name}"
    by_url = own.transcribe(address, {"custom_metadata": {"way": "url"}}, interval=0.05)
    texts = {checked(record).result.transcription.full_transcript for record in (by_path, by_file, by_url)}
    assert len(texts) == 1, texts
    assert by_url.file.source == address and by_path.file.source is None
    return by_path


def refusals(own, job):
    assert "key" in str(refused(401, client("wrong").pre_recorded_v2().list))
    # A path on the client's machine is nothing that the service could fetch.
    error = refused(400, own.create, {"audio_url": str(SPEECH), "diarization": "perhaps"})
    assert error.invalid_parameters == ["audio_url", "diarization"], error.invalid_parameters
    assert "Affected request field(s): audio_url, diarization" in str(error)
    refused(404, own.get, "00000000-0000-4000-8000-000000000000")
    refused(400, own.list, {"limit": 0})
    assert own.delete(job) is True
    refused(404, own.get, job)


def failure(own):
    nowhere = "http://127.0.0.1:1/talk.wav"
    created = own.create({"audio_url": nowhere, "custom_metadata": {"way": "nowhere"}})
    try:
        own.poll(created.id, interval=0.05)
    except Exception as error:
        assert str(error) == f"Pre-recorded job {created.id} failed with error code: 502", error
    else:
        raise AssertionError("there is no audio at all")
    record = checked(own.get(created.id))
    assert (record.status, record.error_code, record.result) == ("error", 502, None)
    assert record.post_session_metadata["error"], "in words"
    return record


def lists(own, failed):
    def pages(query):
        found, page = [], checked(own.list(query))
        while True:
            assert len(page.items) <= query["limit"]
            found += page.items
            if page.next is None:
                return [record.id for record in found]
            page = checked(own.list({"url": page.next}))

    everything = [record.id for record in checked(own.list()).items]
    assert len(everything) == len(set(everything)) > 3 and pages({"limit": 2}) == everything
    assert pages({"limit": 2, "status": ["error"]}) == [failed.id]
    assert pages({"limit": 2, "status": ["queued", "processing"]}) == []
    assert pages({"limit": 1, "custom_metadata": {"way": "nowhere"}}) == [failed.id]
    assert pages({"limit": 9, "date": failed.created_at[:10]}) == everything
    assert pages({"limit": 9, "before_date": failed.created_at}) == everything[1:]
    assert pages({"limit": 9, "after_date": failed.created_at}) == []


def live():
    own = client().live_v2()
    (record,) = checked(own.list()).items
    assert checked(own.get(record.id)) == record
    assert record.kind == "live" and record.result.metadata.audio_duration == 1.5
    # What was imported has no audio, and stays.
    refused(404, own.get_file, record.id)
    refused(404, own.delete, record.id)
    return record


async def asynchronous(transcript):
    own = client().pre_recorded_v2_async()
    record = checked(await own.transcribe(SPEECH, {"custom_metadata": {"way": "async"}}, interval=0.05))
    assert record.result.transcription.full_transcript == transcript
    page = checked(await own.list({"custom_metadata": {"way": "async"}}))
    assert page.items == [checked(await own.get(record.id))]
    assert await own.delete(record.id) is True
    # One upload, two creates, and its file when both have ended.
    uploaded = checked(await own.upload_file(SPEECH))
    created = checked(await own.create({"audio_url": uploaded.audio_url}))
    one = checked(await own.poll(created.id, interval=0.05))
    other = checked(await own.create_and_poll({"audio_url": uploaded.audio_url}, interval=0.05))
    assert (one.file.id, other.status) == (other.file.id, "done")
    for same in (one, other):
        assert await own.get_file(same.id) == SPEECH.read_bytes()
        assert await own.delete(same.id) is True


async def live_asynchronous(record):
    own = client().live_v2_async()
    assert checked(await own.list()).items == [checked(await own.get(record.id))] == [record]
    for call in (own.get_file, own.delete):
        try:
            await call(record.id)
        except HttpError as error:
            assert error.status == 404, error
        else:
            raise AssertionError("an imported record has no audio, and stays")


def main():
    kinds = (PreRecordedV2Client, PreRecordedV2AsyncClient, LiveV2Client, LiveV2AsyncClient)
    everything = {name for kind in kinds for name in offered(kind)}
    own = client().pre_recorded_v2()
    uploaded = upload(own)
    created = waiting(own, uploaded)
    record = done(own, created, uploaded)
    plain = other_ways(own)
    refusals(own, plain.id)
    asyncio.run(asynchronous(plain.result.transcription.full_transcript))
    lists(own, failure(own))
    asyncio.run(live_asynchronous(live()))
    assert everything == CALLED, f"not called: {sorted(everything - CALLED)}"
    for one in (record, plain):
        print(one.result.transcription.full_transcript)


if __name__ == "__main__":
    sys.exit(main())
