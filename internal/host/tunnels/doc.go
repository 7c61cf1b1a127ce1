// Package tunnels keeps the tunnels that are uplinks of a host (docs/protocol.md §5.9): each interface is made, led to a
// router that answers, watched, and led elsewhere. What is sent by it, and whether the host is there, others decide.
package tunnels
