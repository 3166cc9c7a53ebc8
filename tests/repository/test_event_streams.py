"""The tests' client of server-sent events."""

import socket
import threading

from event_streams import EventStream

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
_EVENT = b"data: {}\nid: 7\n\n"


def test_close_wakes_the_reader_of_a_silent_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(_HEAD + b"%x\r\n%s\r\n" % (len(_EVENT), _EVENT))
                # until the client closes the connection
                connection.recv(4096)

        thread = threading.Thread(target=answer)
        thread.start()
        with EventStream(f"http://127.0.0.1:{server.getsockname()[1]}") as stream:
            assert stream.wait_for(1) == [(7, {})]
            assert not stream.is_ended
        thread.join()
    assert stream.is_ended
