// Package api carries the daemons' API: where it is (endpoints), how to reach it (Dial) and how to
// offer it (Listen, Serve). What is said is in package apiv1, generated from v1/scaffold.proto.
//
// An endpoint is written unix:/path/to/socket or http://host:port. Both speak HTTP/2 without TLS
// (h2c) and, for curl and browsers, HTTP/1.1: gRPC, gRPC-Web and JSON over POST from one port.
package api
