// Package api carries the daemons' API: where it is (endpoints), how to reach it (Dial) and how to
// offer it (Listen, Serve). What is said is in package apiv1, generated from v1/scaffold.proto.
//
// An endpoint is written unix:/path/to/socket, http://host:port or https://host:port. The two first speak HTTP/2
// without TLS (h2c), the last with it, and all of them, for curl and browsers, HTTP/1.1: gRPC, gRPC-Web and JSON
// over POST from one port. Who is at the other end, and what he may do, is the business of who serves.
package api
