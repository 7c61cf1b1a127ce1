// Package resolve chooses the instance that a first packet goes to: the hash and the weighted
// choice of docs/protocol.md §3.2, slow and obvious. The BPF program in internal/bpf/router does the
// same bit for bit, from the nodes that Table lays out here, and is tested against this package.
//
// The choice depends on the packet's source address and flow label alone, so that a repeated SYN and every fragment of a
// datagram meet the same instance without state on any router; and one that an instance returns meets another.
package resolve

//go:generate go run gen_log2.go
