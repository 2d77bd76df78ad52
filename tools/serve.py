"""Serve a folder on this machine alone, from a thread or, run as a program, until Ctrl-C."""

import argparse
import functools
import sys
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Quiet(SimpleHTTPRequestHandler):
    """Serve files without a line for each request."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def send_response(self, code, message=None):
        """Note how the request went, for the headers."""
        self.found = code == 200
        super().send_response(code, message)

    def end_headers(self):
        """Let browsers keep what carries its sum in its address, as a host should."""
        kept = ("/_runtime/", "/_model/", "/lite/python-")
        if self.found and any(place in self.path for place in kept):
            self.send_header("Cache-Control", "public, max-age=31536000, immutable")
        super().end_headers()

    def log_message(self, *args):
        """Print nothing."""


class Server(ThreadingHTTPServer):
    """Answer each request in a thread of its own."""

    request_queue_size = 128  # A page asks for dozens of files at once.

    def handle_error(self, request, client_address):
        """Say nothing of a browser that left in the middle of a file, as it may."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def server(folder, port=0, handler=Quiet):
    """Return a server of `folder` on 127.0.0.1; port 0 means any free one."""
    return Server(("127.0.0.1", port), functools.partial(handler, directory=str(folder)))


@contextmanager
def served(folder, handler=Quiet):
    """Serve `folder` from a thread; give the address, without a slash at its end."""
    with server(folder, handler=handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()
        thread.join()


def main():
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default="_build/html")
    parser.add_argument("--port", type=int, default=8000, help="0: any free one")
    arguments = parser.parse_args()
    try:
        httpd = server(arguments.folder, arguments.port)
    except (OSError, OverflowError) as fault:
        why = getattr(fault, "strerror", None) or fault
        sys.exit(
            f"Port {arguments.port} cannot be used ({why}): make serve PORT=0 takes a free one."
        )
    with httpd:
        print(f"http://127.0.0.1:{httpd.server_port} (stop with Ctrl-C)", flush=True)
        try:
            httpd.serve_forever()
        except KeyboardInterrupt:
            print()


if __name__ == "__main__":
    main()
