"""Google Cloud Storage's XML API in front of fake-gcs-server, which writes objects through the JSON API only.

`python gcs_gateway.py ADDRESS` prints its port. delta-rs and obstore write with `PUT /BUCKET/OBJECT` and the condition in the
header `x-goog-if-generation-match`. Here that becomes an upload of the JSON API with the condition `ifGenerationMatch`, which the
emulator checks under a lock. The parts of a multipart upload are joined. Listings get pages of 1,000 keys and `start-after`,
which the emulator ignores. All other requests are passed on.
"""

import itertools
import json
import sys
from http.server import ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.etree import ElementTree

from proxy_handler import ProxyHandler

_PAGE = 1_000
_CONDITION = "x-goog-if-generation-match"
_XML = (("Content-Type", "application/xml"),)


class _Handler(ProxyHandler):
    #: Multipart uploads: id → number → part.
    uploads: ClassVar[dict[str, dict[int, bytes]]] = {}
    numbers = itertools.count(1)

    def translate(self) -> None:
        body = self.body()
        address = urlsplit(self.path)
        bucket, _, name = unquote(address.path).removeprefix("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(address.query, keep_blank_values=True).items()}
        if self.command == "PUT" and "uploadId" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self.answer(200, [("ETag", query["partNumber"])], b"")
        elif self.command == "PUT":
            status, headers, text = self.insert(bucket, name, body)
            self.answer(status, headers.items(), text)
        elif self.command == "POST" and "uploads" in query:
            upload = str(next(self.numbers))
            self.uploads[upload] = {}
            self.answer(200, _XML, _xml("InitiateMultipartUploadResult", Bucket=bucket, Key=name, UploadId=upload))
        elif self.command == "POST" and "uploadId" in query:
            # not removed: the client may repeat a request whose answer was late or an error
            uploaded = self.uploads[query["uploadId"]]
            status, headers, text = self.insert(bucket, name, b"".join(uploaded[number] for number in sorted(uploaded)))
            text = text or _xml("CompleteMultipartUploadResult", Bucket=bucket, Key=name, ETag=headers["ETag"])
            self.answer(status, headers.items(), text)
        elif self.command == "GET" and not name:
            self.list(bucket, query)
        else:
            self.pass_on(body, self.given())

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = translate  # noqa: N815 - names that http.server looks for

    def given(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name.lower() != "host"}

    def insert(self, bucket: str, name: str, data: bytes) -> tuple[int, dict[str, str], bytes]:
        query = {"uploadType": "media", "name": name}
        if _CONDITION in self.headers:
            query["ifGenerationMatch"] = self.headers[_CONDITION]
        # the request that completes an upload has another length than the object
        given = {name: value for name, value in self.given().items() if name.lower() != "content-length"}
        status, headers, text = self.ask("POST", f"/upload/storage/v1/b/{quote(bucket)}/o?{urlencode(query)}", data, given)
        if status != 200:
            return status, headers, text
        stored = json.loads(text)
        return 200, {"ETag": f'"{stored["etag"]}"', "x-goog-generation": str(stored["generation"])}, b""

    def list(self, bucket: str, query: dict[str, str]) -> None:
        known = {name: value for name, value in query.items() if name in ("prefix", "delimiter")}
        status, headers, text = self.ask("GET", f"/{quote(bucket)}?{urlencode(known)}", b"", self.given())
        if status != 200:
            self.answer(status, headers.items(), text)
            return
        result = ElementTree.fromstring(text)
        entries = [entry for tag in ("Contents", "CommonPrefixes") for entry in result.findall(tag)]
        for entry in entries:
            result.remove(entry)
        after = query.get("continuation-token") or query.get("start-after", "")
        left = sorted((entry for entry in entries if _name_of(entry) > after), key=_name_of)
        result.extend(left[:_PAGE])
        if len(left) > _PAGE:
            ElementTree.SubElement(result, "NextContinuationToken").text = _name_of(left[_PAGE - 1])
        self.answer(200, _XML, ElementTree.tostring(result))


def _name_of(entry: ElementTree.Element) -> str:
    return entry.findtext("Key") or entry.findtext("Prefix") or ""


def _xml(tag: str, **fields: str) -> bytes:
    result = ElementTree.Element(tag)
    for name, value in fields.items():
        ElementTree.SubElement(result, name).text = value
    return ElementTree.tostring(result)


def main() -> None:
    """Serve until SIGTERM."""
    _Handler.upstream = sys.argv[1]
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
