// Package flow is the end host's flow machine: what becomes of each packet between local sockets and the
// wire, docs/protocol.md §2-4.
//
// It is sans I/O: time and packets are arguments, packets leave through Drain. It says the same rules as
// the programs of internal/bpf/host, slowly and obviously, and the tests run the same packets through both.
package flow
