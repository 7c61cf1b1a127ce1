// Package memory is where an agent of boost keeps the bytes of all its sessions: one mapping of a file without a name,
// which is taken from the machine page by page as it is used and outlives the process that reads and writes it, where
// another one holds the file.
//
// What is to be sent lies in slots of 16 KiB to 1 MiB, by powers of two; a slot is a run of blocks, and its number that
// of the first one. What is received lies in single blocks, whose numbers the receiver gives out
// ([scaffold.dev/scaffold/internal/core/stripe]).
package memory
