"""The little web server behind `make serve` and the tests."""

import socket
import struct
import urllib.request
from http.server import SimpleHTTPRequestHandler

from tools.serve import served


class Failing(SimpleHTTPRequestHandler):
    def do_GET(self):
        raise ValueError("a fault of the handler's own")


def ask(address, path):
    """Ask for a file and hand back the open connection."""
    host, port = address.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), timeout=60)
    connection.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
    return connection


def test_a_browser_that_leaves_half_way_is_no_fault(tmp_path, capfd):
    (tmp_path / "large").write_bytes(bytes(2**26))
    (tmp_path / "small").write_text("here")
    with served(tmp_path) as address:
        connection = ask(address, "/large")
        assert connection.recv(100).startswith(b"HTTP/1.0 200")
        # Without a linger the connection is reset, as when a tab is closed.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
        assert urllib.request.urlopen(f"{address}/small", timeout=60).read() == b"here"
    assert capfd.readouterr().err == ""


def test_a_fault_of_the_server_is_told(tmp_path, capfd):
    with served(tmp_path, Failing) as address:
        assert ask(address, "/").recv(100) == b""
    assert "a fault of the handler's own" in capfd.readouterr().err
