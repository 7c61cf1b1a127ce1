// Package joining asks the controller for the host's places: all of them when a session begins, and one at a time while it
// lasts. It follows what is heard of the uplinks, chooses the way to the controller, and tells the network where the host is
// to be reached (docs/protocol.md §5.1).
package joining
