"""An S3 server that misbehaves, in a way that the bucket's name says. It verifies no signature.

With an argument it speaks TLS, and writes its certificate to that file.

Prints `endpoint URL`, `ready`, and for each request `request METHOD PATH`; ends when standard input does.
"""

import http.server
import re
import ssl
import subprocess
import sys
import threading
import time

NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"
objects = {}
counts = {}
lock = threading.Lock()


def entry(key, size=3):
    return (f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f'<ETag>"e"</ETag><Size>{size}</Size></Contents>')


def listing(*entries, tail="<IsTruncated>false</IsTruncated>"):
    return f'<ListBucketResult xmlns="{NAMESPACE}">{"".join(entries)}{tail}</ListBucketResult>'.encode()


BOMB = ('<?xml version="1.0"?><!DOCTYPE b [<!ENTITY a "aaaaaaaaaa">'
        + "".join(f'<!ENTITY {n} "{f"&{p};" * 10}">' for p, n in zip("abcdefgh", "bcdefghi")) + "]>").encode()

LISTINGS = {
    "parent-name": listing(entry("../x")),
    "nested-name": listing(entry("a/b")),
    "escape-name": listing(entry("a&#10;b")),
    "negative-size": listing(entry("a", "-1")),
    "huge-size": listing(entry("a", "99999999999999999999")),
    "bomb": BOMB + listing(entry("&i;")),
    "not-xml": b"<html><body>Welcome</body>",
    "html": b"<html><body>Welcome</body></html>",
    "deep": b"<a>" * 100000 + b"</a>" * 100000,
    "loop": listing(entry("a"), tail="<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"),
    "error-body": b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>",
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in fields:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code, **fields):
        self.answer(status, f"<Error><Code>{code}</Code><Message>m</Message></Error>".encode(), **fields)

    def endless(self, status, **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
        except OSError:
            self.close_connection = True

    def handle_one(self):
        print(f"request {self.command} {self.path}", flush=True)
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        path, _, query = self.path.partition("?")
        parts = path.split("/")
        bucket, key = parts[1], "/".join(parts[2:])
        with lock:
            count = counts[bucket, self.command] = counts.get((bucket, self.command), 0) + 1
        if bucket == "redirect":
            return self.answer(307, Location=f"http://127.0.0.1:{self.server.server_port}/stolen/x")
        if bucket == "always-503":
            return self.error(503, "SlowDown")
        if bucket == "busy":
            now = time.monotonic()
            too_early = now < counts.get("wanted", 0)
            counts["wanted"] = now + 1
            if too_early:
                return self.error(403, "TooEarly")
            if count <= 2:
                return self.error(503, "SlowDown", Retry_After="1")
        if bucket == "denied":
            return self.error(403, "SignatureDoesNotMatch")
        if bucket == "silent":
            threading.Event().wait(20)
            return
        if "uploads=" in query and self.command == "GET":
            now = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
            uploads = [("p/old", "old", "2026-01-01T00:00:00.000Z"), ("p/new", "new", now),
                       ("other", "other", "2026-01-01T00:00:00.000Z")]
            return self.answer(200, ("<ListMultipartUploadsResult>" + "".join(
                f"<Upload><Key>{k}</Key><UploadId>{i}</UploadId><Initiated>{t}</Initiated></Upload>"
                for k, i, t in uploads) + "</ListMultipartUploadsResult>").encode())
        if self.command == "GET" and not key:
            if bucket == "endless":
                return self.endless(200)
            return self.answer(200, LISTINGS.get(bucket, listing()), Content_Type="application/xml")
        if self.command == "GET":
            return self.get(bucket, count)
        if self.command == "HEAD":
            return self.head(bucket, key)
        return self.change(bucket, key, query, body, count)

    def get(self, bucket, count):
        first, last = map(int, re.match(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        size = last - first + 1
        fields = dict(ETag='"e"', Content_Range=f"bytes {first}-{last}/100")
        if bucket == "endless":
            return self.endless(206, **fields)
        if bucket == "longer":
            return self.answer(206, b"x" * (size + 1), **fields)
        if bucket == "shorter":
            self.answer(206, b"x" * (size - 1), Content_Length=str(size), **fields)
            self.close_connection = True
            return
        if bucket == "short-length":
            return self.answer(206, b"x" * (size - 1), **fields)
        if bucket == "other-range":
            return self.answer(206, b"x" * size, ETag='"e"', Content_Range=f"bytes {first + 1}-{last + 1}/100")
        if bucket == "whole":
            return self.answer(200, b"x" * 100, ETag='"e"')
        if bucket == "endless-error":
            return self.endless(500)
        return self.answer(206, b"x" * size, **fields)

    def head(self, bucket, key):
        found = objects.get((bucket, key))
        if found is None:
            return self.answer(404)
        body, mark = found
        self.answer(200, Content_Length=str(len(body)), ETag='"e"', Last_Modified="Mon, 23 Nov 2026 13:30:00 GMT",
                    **({"x-amz-meta-drydock-upload": mark} if mark else {}))

    def change(self, bucket, key, query, body, count):
        mark = self.headers.get("x-amz-meta-drydock-upload")
        conditional = self.headers.get("If-None-Match") == "*"
        if query == "uploads=":
            # The upload's identifier is what its object's metadata will have.
            return self.answer(200, f"<InitiateMultipartUploadResult><UploadId>{mark}</UploadId>"
                                    "</InitiateMultipartUploadResult>".encode())
        if "partNumber=" in query:
            return self.answer(200, ETag='"p"')
        if conditional and bucket == "no-conditions":
            return self.error(501, "NotImplemented")
        if self.command in ("PUT", "POST"):
            if self.command == "POST":
                if bucket == "late-error" and count <= 3:
                    return self.error(200, "InternalError")
                if bucket == "late-denial":
                    return self.error(200, "AccessDenied")
                mark, body = query.removeprefix("uploadId="), b"x" * (9 << 20)
            with lock:
                is_taken = conditional and (bucket, key) in objects
                if not is_taken:
                    objects[bucket, key] = (body, mark)
            if is_taken:
                return self.error(412, "PreconditionFailed")
            if bucket == "lost" and self.command == "PUT" and count == 1:
                self.close_connection = True
                return
            result = b"<CompleteMultipartUploadResult></CompleteMultipartUploadResult>"
            if bucket == "other-result":
                result = b"<Done></Done>"
            return self.answer(200, result if self.command == "POST" else b"", ETag='"e"')
        if not query:
            objects.pop((bucket, key), None)
        return self.answer(204)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
scheme = "http"
if len(sys.argv) > 1:
    # With a certificate that it signed itself, written to this file.
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{sys.argv[1]}.key",
         "-out", sys.argv[1]], check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], f"{sys.argv[1]}.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    scheme = "https"
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"endpoint {scheme}://127.0.0.1:{server.server_port}", flush=True)
print("ready", flush=True)
sys.stdin.buffer.read()
