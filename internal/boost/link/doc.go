// Package link is one data connection between two agents of boost: frames of docs/protocol.md §9, protected as
// internal/boost/seal says, over a stream that keeps order.
//
// A frame is its header, then its payload as it is protected, then what protects it. Many small frames leave with one
// system call, and the bytes of a chunk are sealed out of the memory where they are kept, and opened where the kernel has put
// them: behind their header, so that what is authenticated is one piece. What the other agent may not send ends the connection
// with an error that names the frame; nothing that a peer sends allocates.
package link
