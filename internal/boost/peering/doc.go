// Package peering keeps two agents of boost connected (docs/protocol.md §9): the control connection of a trunk, which is
// mutual TLS, its HELLOs, the PINGs by which each agent notices that the other one is gone, and the data connections,
// whose keys come from it.
//
// The agent that begins a trunk has a [Dialer]; the other one calls [Greet] and [Answer] for what its door lets in as a
// control connection, and [Data] for a data connection. What the connections carry is the trunk's.
package peering
