"""A mail server for a test: prints the port on which it listens, and then each mail that it accepts as a line of JSON.

With a certificate and its key it accepts mail only after STARTTLS and from the account `scribed` with the password
`a-password`; with `--tls` as well, the connection is encrypted from its first byte. With `--refuse` it refuses
all recipients.
"""

import argparse
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult


class Printing:
    def __init__(self, options):
        self.options = options

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        if self.options.refuse:
            return "550 no such user here"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        parsed = email.message_from_bytes(envelope.content, policy=email.policy.default)
        parts = {part.get_content_type(): part.get_content() for part in parsed.walk() if not part.is_multipart()}
        print(
            json.dumps(
                {
                    "from": envelope.mail_from,
                    "to": envelope.rcpt_tos,
                    "encrypted": session.ssl is not None,
                    "headers": [[name, str(value)] for name, value in parsed.items()],
                    "parts": parts,
                }
            ),
            flush=True,
        )
        return "250 accepted"


def authenticate(server, session, envelope, mechanism, data):
    is_right = mechanism in ("LOGIN", "PLAIN") and (data.login, data.password) == (b"scribed", b"a-password")
    return AuthResult(success=is_right)


arguments = argparse.ArgumentParser()
arguments.add_argument("--cert")
arguments.add_argument("--key")
arguments.add_argument("--tls", action="store_true")
arguments.add_argument("--refuse", action="store_true")
options = arguments.parse_args()
more = {}
if options.cert:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(options.cert, options.key)
    more = {"authenticator": authenticate, "auth_required": True}
    more |= {"ssl_context": context, "auth_require_tls": False} if options.tls else {"tls_context": context, "require_starttls": True}


class OnAnyPort(Controller):
    def _trigger_server(self):
        # The port is known only now.
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()


controller = OnAnyPort(Printing(options), hostname="127.0.0.1", port=0, **more)
controller.start()
print(controller.server.sockets[0].getsockname()[1], flush=True)
sys.stdin.read()
controller.stop()
