// Package router is the router in the kernel: one tc program on each port that sends packets after hosts that have
// moved, tells their senders where one is gone and, at a service router, refines the
// destination of first packets or refuses them (docs/protocol.md §3.2, §3.5), and the tables that it
// reads.
//
// The maps are pinned: while the daemon is away they and the program stay, and the next Open adopts
// them. The choice itself is internal/core/resolve; the tests run the same packets through both.
//
// Fragments: a later fragment has no ports, and no state may tell it from which flow it is, so all
// fragments of a datagram use the service's entry for any port of UDP.
package router

// The objects are committed; clang is needed only to change them.
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type router_config -type service_key -type source_key -type service_state -type table_key -type table_node resolve resolve.bpf.c -- -O2 -g -Wall -Werror -mcpu=v3 -I/usr/include/x86_64-linux-gnu
