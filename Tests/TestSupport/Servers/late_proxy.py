"""An HTTP proxy on loopback in front of an S3 server, whose listings are late: they miss an object for the next listings after
it was written, and still have one that was removed.

Usage: late_proxy.py PORT LISTINGS. Prints `port NUMBER`, `ready`, and `late KEY` or `gone KEY` for each entry of a listing that
was left out or added; ends when standard input does.
"""

import http.client
import http.server
import re
import sys
import threading
import urllib.parse

target, late = int(sys.argv[1]), int(sys.argv[2])
lock = threading.Lock()
# By bucket and key, for how many more listings.
missing, lingering = {}, {}
# The entries that were in listings.
seen = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server = http.client.HTTPConnection("127.0.0.1", target)
        server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "expect"):
                server.putheader(name, value)
        server.endheaders(body)
        reply = server.getresponse()
        content = reply.read()
        path, _, query = self.path.partition("?")
        _, bucket, key = (path + "/").split("/", 2)
        key = urllib.parse.unquote(key.rstrip("/"))
        with lock:
            if reply.status == 200 and "list-type=2" in query:
                content = self.listing(bucket, urllib.parse.parse_qs(query).get("prefix", [""])[0], content)
            elif reply.status < 300 and (self.command == "PUT" and not query or self.command == "POST" and "uploadId" in query):
                if (bucket, key) not in seen:
                    missing[bucket, key] = late
                lingering.pop((bucket, key), None)
            elif reply.status < 300 and self.command == "DELETE" and not query:
                missing.pop((bucket, key), None)
                if (bucket, key) in seen:
                    lingering[bucket, key] = late
        self.send_response(reply.status)
        for name, value in reply.getheaders():
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                self.send_header(name, value)
        self.send_header("Content-Length", reply.getheader("Content-Length") or "0" if self.command == "HEAD" else str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def listing(self, bucket, prefix, content):
        text = content.decode()
        for entry in re.findall(r"<Contents>.*?</Contents>", text, re.S):
            key = urllib.parse.unquote_plus(re.search(r"<Key>(.*?)</Key>", entry, re.S).group(1))
            if missing.get((bucket, key), 0) > 0:
                text = text.replace(entry, "")
                print(f"late {key}", flush=True)
            else:
                seen[bucket, key] = entry
        added = ""
        for owner, key in [name for name in lingering if name[0] == bucket]:
            # Not those in folders below.
            if lingering[owner, key] > 0 and key.startswith(prefix) and "/" not in key[len(prefix):]:
                added += seen[owner, key]
                print(f"gone {key}", flush=True)
        for counts in (missing, lingering):
            for name in counts:
                if name[0] == bucket and name[1].startswith(prefix):
                    counts[name] -= 1
        return text.replace("</ListBucketResult>", added + "</ListBucketResult>").encode()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"port {server.server_port}", flush=True)
print("ready", flush=True)
sys.stdin.buffer.read()
