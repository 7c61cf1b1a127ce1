// Package underlay makes tunnels for hosts that no cable joins to a router: through any network that carries
// UDP over IPv4 or IPv6, also from behind a NAT. Each tunnel is an Ethernet interface at both ends, so that
// whatever works on a cable works on it: HELLO, PROBE, places, moves.
//
// There are two kinds. VXLAN is the kernel's, in the clear, for hosts that the router can reach. WireGuard
// is encrypted, passes NATs and follows its host to new addresses; a process of its own keeps it (package
// internal/host/underlay/wg), which goes on while the daemon that started it is away.
package underlay
