// Package scaffold opens sockets on services, in the manner of package net: an address is a service's
// name and a port, as in "web:80".
//
// Programs need none of this: any program that connects to the address that web.svc resolves to, or
// listens on it, takes part, and its connections survive moves of either end without its doing. The
// package saves Go programs the resolver and the addresses, and lets a program take part in more:
//
//   - a server learns that it is being drained, and says that its instances share a record of their
//     sessions ([ListenConfig]);
//   - it learns what a connection is called throughout its life and at which byte it stands
//     ([Identify]), so that another instance can go on where this one ended;
//   - it sheds connections: they fail over by the service's policy ([CloseFail], [FailAll]);
//   - either end moves a connection to another interface, now ([Move]).
//
// It asks the host daemon over its Unix socket, and hands out ordinary *net.TCPConn and the like.
package scaffold
