// Package guests holds the network namespaces behind a host's edge: each gets a link, an address and routes of its own, its
// sockets are watched, and all of it goes when the namespace does (docs/guests.md). Where the host is, what becomes of
// flows and what is served it is told, or asks.
package guests
