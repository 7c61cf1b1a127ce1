// Package answers decides about packets in place of a Linux router's kernel: for switches, about what their tables
// cannot answer, and for emulated routers. It does what internal/bpf/router/resolve.bpf.c does, packet by packet, and
// is tested against it. It has no clock and does no I/O.
package answers
