// Package door is the port of an agent of boost, at which other agents begin their trunks. Two kinds of connections come
// to it, told apart by their first byte: a control connection, which begins with a TLS handshake, and data
// connections, which begin with a HELLO of 80 bytes (docs/protocol.md §9).
//
// Whoever is not authenticated costs a lookup: a connection from an address that no agent of the network has is closed
// before anything is read. From an agent's address so much may wait, and no more: 64 connections at a time, 2 s each,
// and of a data connection the 80 bytes whose MAC decides. What exceeds that is closed and counted; connections of other
// addresses do not notice, for each address has room of its own, and there are as many addresses as agents.
package door
