// Package trunk is one end of all connections between two agents of boost: it drives the engines of
// [scaffold.dev/scaffold/internal/core/stripe] with real sockets (docs/protocol.md §9).
//
// A [Trunk] has one lock, under which its engines decide; bytes are read, sealed, opened and written outside of it. Each
// data connection has two goroutines, and so has each end of a session: they wait for the kernel, or to be woken because
// an engine has something for them. A session that nobody uses holds no memory but its own few hundred bytes and its
// stacks: a slot is taken once its socket can be read.
//
// It does not know where sessions come from, nor who the two agents are: it is given connections that have proved that
// (internal/boost/door), and functions that connect to servers.
package trunk
