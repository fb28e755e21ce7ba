# Serves S3 until its standard input ends, so it ends however its test does.
import os
import sys

from moto.moto_server.threaded_moto_server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("listening", server.get_host_and_port()[1], flush=True)
sys.stdin.read()
os._exit(0)
