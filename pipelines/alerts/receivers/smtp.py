"""Mail by SMTP."""

import smtplib
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from pipelines.alerts.receivers.message import subject, text_body
from pipelines.alerts.receivers.receiver import Context, DeliveryError, redacted
from pipelines.alerts.section import Section
from pipelines.alerts.states import Grouping, Notification

_TLS = ("starttls", "tls", "none")
_LONGEST_SUBJECT = 200


@dataclass(frozen=True)
class Smtp:
    """One mail per notification, as plain text."""

    name: str
    grouping: Grouping
    timeout_seconds: float
    host: str
    port: int
    tls: str
    cafile: str
    sender: str
    recipients: tuple[str, ...]
    username: str
    password: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    max_alerts: int
    kind: str = "smtp"

    @classmethod
    def of(cls, name: str, grouping: Grouping, timeout_seconds: float, section: Section) -> "Smtp":
        """Read the keys of a mail server."""
        tls = section.choice("tls", _TLS, "starttls")
        recipients = section.names("to")
        if recipients is None:
            raise section.fail("to", "is missing")
        sender = section.text("from")
        for address in (sender, *recipients):
            if "@" not in address or not address.isprintable() or any(char in address for char in ",;<> "):
                raise section.fail("from and to", f"must be mail addresses such as ops@example.org, not {address!r}")
        username, password = section.text("username", ""), section.text("password", "")
        if bool(username) != bool(password):
            raise section.fail("username and password", "belong together: give both or neither")
        if password and tls == "none":
            raise section.fail("tls", 'is "none": a password is only sent over TLS')
        return cls(
            name=name,
            grouping=grouping,
            timeout_seconds=timeout_seconds,
            host=section.text("host"),
            port=section.number("port", {"starttls": 587, "tls": 465, "none": 25}[tls], 1, 65_535),
            tls=tls,
            cafile=section.text("cafile", ""),
            sender=sender,
            recipients=recipients,
            username=username,
            password=password,
            secrets=(*section.secrets, *([password] if password else [])),
            max_alerts=section.number("max_alerts", 100, 0, 1_000_000),
        )

    def send(self, notification: Notification, context: Context) -> str:
        """Send the mail."""
        mail = EmailMessage()
        # group names come from clients: a line break in one must not start a header
        mail["Subject"] = redacted(subject(notification), ())[:_LONGEST_SUBJECT]
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.recipients)
        mail["Date"] = formatdate(context.now_ms / 1000)
        mail["Message-ID"] = make_msgid(domain="grouplake")
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(text_body(notification, context, self.max_alerts))
        try:
            refused = self._deliver(mail)
        except smtplib.SMTPRecipientsRefused as error:
            code, refusal = next(iter(error.recipients.values()))
            raise DeliveryError(f"SMTP {code}: {refusal.decode(errors='replace')}") from error
        except smtplib.SMTPResponseException as error:
            reason = error.smtp_error
            shown = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            raise DeliveryError(f"SMTP {error.smtp_code}: {shown}") from error
        except (OSError, smtplib.SMTPException) as error:
            raise DeliveryError(f"{type(error).__name__}: {error}") from error
        return f"refused for {', '.join(sorted(refused))}" if refused else ""

    def _deliver(self, mail: EmailMessage) -> Collection[str]:
        """Send the mail and return the refused recipients, if the server accepted others."""
        if self.tls == "tls":
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=self.timeout_seconds, context=self._context())
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=self.timeout_seconds)
        with server:
            if self.tls == "starttls":
                server.starttls(context=self._context())
            if self.username:
                server.login(self.username, self.password)
            return server.send_message(mail)

    def _context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.cafile or None)
