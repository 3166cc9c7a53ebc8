"""Frames of clients and of brokers: mutated requests and responses of every API and version."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random
from typing import NamedTuple

from client_codecs import read_response, write_request
from fuzz_mutations import mutated
from fuzz_seeds import drawn
from fuzz_target import Target
from wire_messages import CLIENT_ID, EVERY_VERSION, HOST, NAMES, request_parts, responses

from coordinator_core.protocol import apis
from coordinator_core.protocol.api import AnyApi
from coordinator_core.protocol.apis import APIS
from coordinator_core.protocol.cluster import ProduceRequest
from coordinator_core.protocol.groups import FindCoordinatorRequest
from coordinator_core.wire import (
    MalformedMessage,
    Peer,
    UnknownApi,
    UnsupportedVersion,
    WireRequest,
    WireResponse,
    is_decoded_within,
    read_request,
    write_response,
)

_PEER = Peer(HOST, NAMES)
_OF_EACH = 3
#: Beginning of a request header: API, version, correlation id.
_HEADER = 8
#: Tagged fields in place of an empty section: unknown ones, an endless number of them, one of endless size.
_TAGS = (
    b"\x01\x63\x02ab",
    b"\x02\x00\x01\x01\x05\x00",
    b"\xff\xff\xff\xff\x0f\x01\x01a",
    b"\x01\x05\xff\xff\xff\xff\x0f",
    b"\x80" * 40,
)


class Answer(NamedTuple):
    """A frame of a broker, and the request that it answers."""

    api: AnyApi
    version: int
    frame: bytes


@cache
def _frames() -> tuple[tuple[bytes, ...], tuple[Answer, ...]]:
    requests, answers = [], []
    for api, version in EVERY_VERSION:
        samples = drawn(responses(api, version), _OF_EACH)
        for parts in drawn(request_parts(api, version), _OF_EACH):
            frame = write_request(api, version, parts, 7, CLIENT_ID)
            requests.append(frame)
            answer = b"".join(
                write_response(read_request(frame, _PEER), [samples[number % len(samples)] for number in range(len(parts))])
            )
            answers.append(Answer(api, version, answer))
    return tuple(requests), tuple(answers)


@cache
def _answer_frames() -> tuple[bytes, ...]:
    return tuple(answer.frame for answer in _frames()[1])


def _changed(rng: Random, frame: bytes, others: Sequence[bytes]) -> bytes:
    kind = rng.random()
    if kind < 0.15:
        zeros = [at for at in range(_HEADER, len(frame)) if frame[at] == 0]
        if zeros:
            at = rng.choice(zeros)
            return frame[:at] + rng.choice(_TAGS) + frame[at + 1 :]
    if kind < 0.9:
        return frame[:4] + mutated(rng, frame[4:], others)
    return mutated(rng, frame, others)


@cache
def _produce_frames() -> tuple[bytes, ...]:
    numbered = apis.PRODUCE.number.to_bytes(2)
    return tuple(frame for frame in _frames()[0] if frame.startswith(numbered))


def _make_large(rng: Random) -> bytes:
    frames = _produce_frames()
    return _changed(rng, frames[int(rng.random() * len(frames))], frames)


def _make_request(rng: Random) -> bytes:
    frames = _frames()[0]
    return _changed(rng, frames[int(rng.random() * len(frames))], frames)


def _make_answer(rng: Random) -> Answer:
    answers = _frames()[1]
    answer = answers[int(rng.random() * len(answers))]
    return answer._replace(frame=_changed(rng, answer.frame, _answer_frames()))


def check_requests(frames: Sequence[bytes]) -> None:
    """Require a request with parts of its API, or one of the three errors; what was read can be written and read again."""
    for frame in frames:
        try:
            request = read_request(frame, _PEER)
        except (UnknownApi, UnsupportedVersion, MalformedMessage) as error:
            if not str(error):
                raise
            continue
        assert isinstance(request, WireRequest)
        check_written(request)


def check_written(request: WireRequest) -> None:
    """A response in our form is read back the same."""
    header = request.header
    api = APIS[header.api_key]
    if api is apis.LEAVE_GROUP or request.unknown_topics or _has_unknown_key_type(request):
        return
    frame = write_request(api, header.version, request.parts, header.correlation_id, header.client_id)
    again = read_request(frame, _PEER)
    assert read_request(write_request(api, header.version, again.parts, 7, header.client_id), _PEER).parts == again.parts


def _has_unknown_key_type(request: WireRequest) -> bool:
    """Such a type is read as None, so there is no number to write."""
    return any(isinstance(part, FindCoordinatorRequest) and part.key_type is None for part in request.parts)


def check_large(frames: Sequence[bytes]) -> None:
    """A limit that is enough for the decoder is enough; one below the bytes that are not records is not."""
    for frame in frames:
        found = [is_decoded_within(frame, limit) for limit in range(len(frame) + 1)]
        assert found == sorted(found)
        try:
            request = read_request(frame, _PEER)
        except (UnknownApi, UnsupportedVersion, MalformedMessage):
            continue
        header = request.header
        produce = request.parts[0] if request.parts else None
        if not isinstance(produce, ProduceRequest) or request.unknown_topics:
            continue
        records = sum(len(each.records or b"") for each in produce.partitions)
        assert found[len(frame) - records]
        # without unknown tagged fields, with the shortest varints, and with no text longer than the bytes it was read from
        client_id = header.client_id and _shortened_text(header.client_id)
        shortest = write_request(apis.PRODUCE, header.version, [_shortened(produce)], header.correlation_id, client_id)
        assert not found[len(shortest) - records - 1]


def _shortened(produce: ProduceRequest) -> ProduceRequest:
    return replace(
        produce,
        transactional_id=produce.transactional_id and _shortened_text(produce.transactional_id),
        partitions=tuple(each._replace(topic=_shortened_text(each.topic)) for each in produce.partitions),
    )


def _shortened_text(text: str) -> str:
    """One byte for each U+FFFD, which has three, but may stand for a single byte that is not UTF-8."""
    return text.replace("\ufffd", "?")


def check_answers(answers: Sequence[Answer]) -> None:
    """Require a response, or MalformedMessage."""
    for answer in answers:
        try:
            response = read_response(answer.api, answer.version, answer.frame, NAMES)
        except MalformedMessage as error:
            if not str(error):
                raise
            continue
        assert isinstance(response, WireResponse)


TARGETS = (
    Target("wire-requests", _make_request, check_requests, share=60, chunk=32),
    Target("large-requests", _make_large, check_large, share=2, chunk=16),
    Target("wire-answers", _make_answer, check_answers, share=30, chunk=32),
)
