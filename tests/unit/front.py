#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What stands before a server on loopback: TLS, or a proxy. Prints its port, then serves until it is killed.

front.py tls PORT CERTIFICATE KEY [CA]   ends TLS and passes the bytes on to PORT; with CA it asks for a client certificate
front.py proxy LOG                       connects where CONNECT says, to loopback only, and writes each such line to LOG
"""
import socket
import ssl
import sys
import threading


def copy(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def join(left, right):
    back = threading.Thread(target=copy, args=(right, left), daemon=True)
    back.start()
    copy(left, right)
    back.join()


def tls(connection, port, certificate, key, ca=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    if ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(ca)
    with context.wrap_socket(connection, server_side=True) as inner:
        join(inner, socket.create_connection(("127.0.0.1", int(port))))


def proxy(connection, log):
    head = b""
    while b"\r\n\r\n" not in head:
        head += connection.recv(1)
    line = head.split(b"\r\n")[0].decode()
    with open(log, "a", encoding="utf-8") as file:
        file.write(line + "\n")
    port = int(line.split()[1].rsplit(":", 1)[1])
    target = socket.create_connection(("127.0.0.1", port))
    connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    join(connection, target)


def serve(connection, kind, arguments):
    try:
        {"tls": tls, "proxy": proxy}[kind](connection, *arguments)
    except OSError:
        pass
    finally:
        connection.close()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, sys.argv[1], sys.argv[2:]), daemon=True).start()


main()
