// Package gateway lets clients that have no Scaffold reach services by an address and port of this host.
//
// A listener takes TCP connections, Unix sockets' or UDP datagrams and opens a connection of its own to
// the name behind it, through the host's own stack: the network picks the instance, as for every program
// of the host. Bytes go from one socket to the other inside the kernel; nothing is terminated, looked
// into or kept.
//
// A gateway that leaves says so first (/healthz), takes what still comes for a while, closes its
// listeners with nothing left in their queues, and ends when its flows have ended. One that is replaced
// hands its listeners and its UDP sessions to the next: nothing is closed in between.
package gateway
