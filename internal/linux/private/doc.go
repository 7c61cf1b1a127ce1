// Package private holds what belongs to this process's user alone: directories that nobody else can write to, sockets
// whose other end is the same user, and the one place that a daemon takes in its network namespace.
//
// Names of sockets in the abstract belong to whoever binds them first. Nothing here trusts one, nor a file in a
// directory that others can write to (docs/protocol.md §7: a local user).
package private
