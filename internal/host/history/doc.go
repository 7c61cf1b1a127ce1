// Package history remembers what happened to the flows of a host, for those who ask later: of each its beginning and the
// newest events, for a while after its end.
package history
