"""HTTP/1.1 on the loop: what the store's HTTP ports have in common, whatever they answer.

    answers, incoming_request, request_parser    bytes to requests and back (pure); Thrift over HTTP stands on these
    exchange, routes, problems                   what handlers see (pure)
    connection, server                           a port of its own

A port is a function of a ``Request``, mostly ``Routes``, and a server:

    routes = Routes([("GET", "/{table}/{row}", read_row), ("POST", "/{table}/{row}", write_row)])
    server = HttpServer(routes, users=HttpUsers(sign_in), tls=tls, visitors=visitors, gate=gate)
    await server.start(host, port)
"""
