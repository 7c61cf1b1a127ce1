// Package session keeps flows alive while their ends move, die and are copied: docs/protocol.md §6.
//
// An Engine holds one host's ends of bound flows. It is sans I/O: the caller gives it time, messages and
// what the data path saw, and takes messages to send and changes for the data path from Drain. The
// states and the legal moves between them are those of model/*.pml; a test compares them.
package session
