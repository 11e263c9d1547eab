"""What the checker sends is kept on this machine, and is a recording where one is wanted.

Addresses that the service would fetch or call lead to a port of this machine where nobody listens; they stay
as wrong as they were made. Files become the recording in SPEECH, but for those that are to be wrong. What is
right and refused all the same, since this build cannot do it, is left out: nearly all would be refused for it.
"""

import os
import re

import schemathesis

ADDRESSES = ("audio_url", "video_url", "callback_url", "webhook_url", "url")
FILES = ("audio", "video", "file")
BEYOND = ("language", "language_config", "languages_guidance", "code_switching_config", "pii_redaction")
HOST = re.compile(r"^(https?://)[0-9a-z.-]+(:[0-9]*)?(?=[/?#]|$)", re.IGNORECASE)
with open(os.environ["SPEECH"], "rb") as file:
    SPEECH = file.read()


@schemathesis.hook
def before_call(context, case, kwargs):
    good = case.meta is None or case.meta.generation.mode.is_positive
    is_form = (case.media_type or "").startswith("multipart/")
    case.body = kept(case.body, good and is_form)
    if good and not is_form and isinstance(case.body, dict):
        case.body = {name: value for name, value in case.body.items() if name not in BEYOND}


def kept(value, with_speech):
    if not isinstance(value, dict):
        return value
    return {name: kept_field(name, one, with_speech) for name, one in value.items()}


def kept_field(name, value, with_speech):
    if name in ADDRESSES and isinstance(value, str):
        return HOST.sub(r"\g<1>127.0.0.1:1", value)
    if name in FILES and with_speech:
        return SPEECH
    return kept(value, with_speech)
