// Package routing is what a host needs in the kernel so that packets find their way: addresses, routes, rules and switches of
// its network namespace, or of the VRF in which its uplinks are, and those of a guest's. They are kept in place: what
// somebody removes is put back. Where the host is it is told.
package routing
