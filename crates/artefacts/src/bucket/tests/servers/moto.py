# Serves S3 until its standard input ends, so it ends however its test does.
#
# moto looks and then writes, in threads: on a busy machine two creates of one key both succeed. So
# its requests are carried out one at a time here. What they bring is read before that, so that a
# client that is stopped in the middle holds up nobody.
import io
import os
import sys
import threading

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

moto = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def one_at_a_time(environ, start_response):
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"]
    chunked = environ.get("wsgi.input_terminated", False)
    environ["wsgi.input"] = io.BytesIO(body.read() if chunked else body.read(length))
    with turn:
        return list(moto(environ, start_response))


server = make_server("127.0.0.1", 0, one_at_a_time, threaded=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
print("listening", server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
