// Package bpftest runs a tc program on bytes and says what became of them: verdict, bytes, and which
// counters moved. Nothing is attached to anything; the caller needs the right to load BPF.
//
// Frames carry an Ethernet header, because BPF_PROG_TEST_RUN insists on one; Packet leaves it out.
package bpftest
