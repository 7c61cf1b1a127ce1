// Package e2e holds tests only: what the whole product promises, asked of a network of daemons with
// plain sockets and unmodified programs.
package e2e
