// Package divert is an agent of boost in the kernel (docs/protocol.md §9): programs at its ports through which a TCP
// connection that passes the machine comes to the agent, and by which it goes on where the agent does not take it.
//
// divert runs on what arrives at a port. A segment of a session, that is of a transparent socket of the agent, is given
// to the socket. A SYN in a lane is held: dropped, and told to the agent with its frame. All else goes on untouched, and
// so does a SYN that nobody would decide about: one beyond the limit, or of an agent that was not heard for 200 ms.
// reinject, at lo, sends a held SYN that the agent has decided about back to the port where it came, so that the kernel
// takes it as it took the first. finish runs on what leaves a port: where an agent has died amid a session, the kernel
// ends its socket by FIN, and that becomes RST.
//
// Programs and sessions are pinned, and outlive the agent; the next one adopts them, and puts back at its end what the
// killed one changed of rules, routes and sysctls.
//
// A lane is found by the longest server prefix, then by the longest client prefix, then by port and slot. Go makes the
// two prefix tables such that each pair of prefixes has all rules that fit it, in order: no packet looks twice.
package divert

// The objects are committed; clang is needed only to change them.
//go:generate go tool bpf2go -cc clang-19 -strip llvm-strip-19 -no-global-types -type ends -type options -type session -type held -type held_syn -type divert_config -type server_key -type client_key -type rule -type rules -type divert_reason divert divert.bpf.c -- -O2 -g -Wall -Werror -mcpu=v3 -I/usr/include/x86_64-linux-gnu
