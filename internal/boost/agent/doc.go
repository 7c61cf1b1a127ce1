// Package agent joins the rooms of boost into an agent: connections that pass its machine (internal/boost/ends) become
// sessions of a trunk to another agent (internal/boost/trunk, internal/boost/peering), which connects to their servers
// (docs/protocol.md §9).
//
// What it may do the controller says, as [Lanes]: which connections are its own to take, by which agents they go on, and
// for which it connects to servers. An agent never connects to anything, in anybody's name, that is in no lane.
package agent
