// Package permit is how people keep and pass on a service's key and the permits that it gives: as PEM files
// that other tools read, too. docs/protocol.md §5.6 says what they mean.
package permit
