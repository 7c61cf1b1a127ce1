// Package wg is the process that keeps WireGuard for a daemon, apart from it: what it carries goes on while the
// daemon is away. It runs in a network namespace of its own, where WireGuard's interface is the only one. The
// UDP socket of WireGuard is in the daemon's namespace, and so are the ends of the tunnels, VXLAN devices whose
// packets pass through the private one: nobody else can send into them, no filter or route of the machine
// meets them, and they end with the process.
//
// The kernel's WireGuard is used where there is one, else wireguard-go over a TUN device.
package wg
