// Package userstack is an IPv6 stack in user space whose interfaces are the ports of an OpenFlow switch or an emulated router:
// frames that the switch punts go in by Deliver, what the stack has to say comes out by a callback. It has one
// link-local address, the same on every port, answers neighbour discovery and ping of it, takes TCP
// connections, and sends and receives datagrams.
//
// Ports are isolated from each other: nothing is forwarded, the same host address may appear on two of them,
// and a segment counts for connections of its own port alone. What hosts can make the stack keep is bounded.
//
// Switches that carry offloads of virtual interfaces punt packets as the sender left them: with half a checksum,
// and TCP segments that are larger than the MTU. So checksums of TCP and UDP are not verified, and the receive
// window is small enough for what is punted to fit a message of OpenFlow.
//
// TCP and neighbour discovery are those of gVisor (gvisor.dev/gvisor/pkg/tcpip); no other package imports it.
package userstack
