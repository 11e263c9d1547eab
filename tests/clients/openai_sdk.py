"""OpenAI's official Python client, as it is, against a running `scribed serve`.

What it is told is in the environment: SERVICE_URL, SERVICE_KEY, SPEECH (a recording) and STEREO (two people, each
on a channel). The last lines on stdout are what was heard in SPEECH. The client reads answers without checking
them, so each is validated afterwards against the client's own types.
"""

import asyncio
import os
import sys
from pathlib import Path

import openai
from openai.types import Model
from openai.types.audio import (
    Transcription,
    TranscriptionDiarized,
    TranscriptionVerbose,
    Translation,
    TranslationVerbose,
)

URL = os.environ["SERVICE_URL"] + "/v1"
KEY = os.environ["SERVICE_KEY"]
SPEECH = Path(os.environ["SPEECH"])
STEREO = Path(os.environ["STEREO"])
SEGMENT = {
    "avg_logprob", "compression_ratio", "end", "id", "no_speech_prob", "seek", "start", "temperature", "text", "tokens",
}


def client(key=KEY):
    return openai.OpenAI(api_key=key, base_url=URL, max_retries=0, timeout=120)


def checked(kind, answer):
    """The answer is of this type of the client, and passes its validation."""
    data = answer.to_dict(mode="json")
    assert type(answer) is kind, answer
    assert kind.model_validate(data, strict=True).to_dict(mode="json") == data
    return answer


def create(**asked):
    return client().audio.transcriptions.create(**{"model": "whisper-1", "file": SPEECH, **asked})


def refused(kind, param, code, call):
    try:
        answer = call()
    except openai.APIStatusError as error:
        assert type(error) is kind, error
        assert (error.param, error.code) == (param, code), error.body
        assert error.message and error.request_id.startswith("G-"), error
        return error
    raise AssertionError(f"not refused: {answer}")


def models():
    own = client()
    listed = [checked(Model, one).id for one in own.models.list()]
    assert listed == ["scribed", "whisper-1", "gpt-transcribe"]
    for one in listed:
        assert checked(Model, own.models.retrieve(one)).owned_by == "scribed"
    refused(openai.NotFoundError, "model", "model_not_found", lambda: own.models.retrieve("whisper-9"))


def formats():
    """The text, and that every format has it."""
    text = checked(Transcription, create(keywords=["young"], temperature=0.2, prompt="A novel.")).text
    plain = checked(Transcription, create(model="gpt-transcribe", language="en"))
    assert plain.usage.type == "duration" and plain.usage.seconds > 1
    assert [language.code for language in plain.languages] == ["en"]
    assert create(response_format="text") == plain.text + "\n"
    assert create(response_format="srt").startswith("1\n00:00:0")
    assert create(response_format="vtt").startswith("WEBVTT\n")
    verbose(plain.text)
    return text, plain.text


def verbose(text):
    both = create(response_format="verbose_json", timestamp_granularities=["word", "segment"])
    checked(TranscriptionVerbose, both)
    assert (both.text, both.language) == (text, "english")
    assert "".join(segment.text for segment in both.segments).strip() == text
    assert " ".join(word.word for word in both.words) == text
    assert set(both.segments[0].to_dict()) == SEGMENT
    assert all(0 <= word.start < word.end <= both.duration for word in both.words)
    words = checked(TranscriptionVerbose, create(response_format="verbose_json", timestamp_granularities=["word"]))
    assert (words.words, words.segments) == (both.words, None)
    segments = checked(TranscriptionVerbose, create(response_format="verbose_json"))
    assert (segments.words, segments.segments) == (None, both.segments)


def speakers():
    answer = create(file=STEREO, response_format="diarized_json", chunking_strategy="auto")
    checked(TranscriptionDiarized, answer)
    assert {segment.speaker for segment in answer.segments} == {"A", "B"}
    alone = checked(TranscriptionDiarized, create(response_format="diarized_json"))
    assert {segment.speaker for segment in alone.segments} == {"A"}


def streamed(text):
    events = list(create(stream=True))
    assert {event.type for event in events[:-1]} == {"transcript.text.delta"}
    assert "".join(event.delta for event in events[:-1]) == text
    assert (events[-1].type, events[-1].text) == ("transcript.text.done", text)
    events = list(create(file=STEREO, stream=True, response_format="diarized_json"))
    assert {event.type for event in events[:-1]} == {"transcript.text.segment"}
    assert {event.speaker for event in events[:-1]} == {"A", "B"}


def translations(text):
    own = client().audio.translations
    assert checked(Translation, own.create(model="whisper-1", file=SPEECH)).text == text
    assert own.create(model="whisper-1", file=SPEECH, response_format="text") == text + "\n"
    verbose = own.create(model="whisper-1", file=SPEECH, response_format="verbose_json")
    assert checked(TranslationVerbose, verbose).language == "english"


def refusals():
    wrong = client("wrong")
    refused(openai.AuthenticationError, None, "invalid_api_key", wrong.models.list)
    refused(
        openai.AuthenticationError, None, "invalid_api_key",
        lambda: wrong.audio.transcriptions.create(model="whisper-1", file=SPEECH),
    )
    bad = openai.BadRequestError
    refused(openai.NotFoundError, "model", "model_not_found", lambda: create(model="gpt-9"))
    refused(bad, "language", "unsupported_language", lambda: create(language="de"))
    refused(bad, "include", "unsupported_parameter", lambda: create(include=["logprobs"]))
    refused(bad, "known_speaker_names", "unsupported_parameter", lambda: create(known_speaker_names=["Anna"]))
    refused(bad, "response_format", "invalid_value", lambda: create(stream=True, response_format="srt"))
    error = refused(bad, "file", None, lambda: create(file=("talk.wav", b"no recording")))
    assert error.type == "invalid_request_error"


async def asynchronous(text):
    async with openai.AsyncOpenAI(api_key=KEY, base_url=URL, max_retries=0, timeout=120) as own:
        answer = await own.audio.transcriptions.create(model="whisper-1", file=SPEECH)
        assert checked(Transcription, answer).text == text
        stream = await own.audio.transcriptions.create(model="whisper-1", file=SPEECH, stream=True)
        assert [event async for event in stream][-1].text == text


def main():
    models()
    with_keywords, text = formats()
    speakers()
    streamed(text)
    translations(text)
    refusals()
    asyncio.run(asynchronous(text))
    print(with_keywords)
    print(text)


if __name__ == "__main__":
    sys.exit(main())
