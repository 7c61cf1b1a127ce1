// Package scaffold opens sockets on services, in the manner of package net: an address is a service's
// name and a port, as in "web:80".
//
// Programs need none of this: any program that connects to the address that web.svc resolves to, or
// listens on it, takes part. The package saves Go programs the resolver and the addresses. It asks the
// host daemon over its Unix socket, and hands out ordinary *net.TCPConn and the like.
package scaffold
