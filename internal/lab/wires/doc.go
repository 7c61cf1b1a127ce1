// Package wires makes what a lab's plan says of namespaces and interfaces: pairs of veth, tunnels, addresses, static
// routes, rates; and breaks, mends and counts them.
//
// Who removes the namespaces removes all of it. Interfaces of the emulator are the emulator's: here they get their
// addresses and routes alone.
package wires
