// Package wg is the process that keeps WireGuard for a daemon, apart from it: what it carries goes on while the
// daemon is away. It runs in a network namespace of its own, where WireGuard's interface is the only one. The
// UDP socket of WireGuard is in the daemon's namespace, and so are the ends of the tunnels: nobody else can send
// into what WireGuard carries, no filter or route of the machine meets it, and it ends with the process.
//
// The kernel's WireGuard is used where there is one; the ends are VXLAN devices then, whose packets pass through
// the private namespace. Else it is wireguard-go, and the ends are TAP devices: this process makes the VXLAN, cuts
// what the kernel sends as one large frame, and joins what came in pieces. A VXLAN device over wireguard-go's own
// TUN device carries a tenth of that: the kernel cuts its packets first, for no TUN device before Linux 6.17 takes
// large ones with a tunnel's headers, and each then passes alone.
package wg
