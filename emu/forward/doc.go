// Package forward is a router's program: it forwards IPv6 and IPv4 as routers do.
//
// A [Forwarder] looks a packet's destination up in its table, takes one from the hop limit, and sends the packet to
// a port, or to one of several by the hash of its flow. What it cannot forward it answers with ICMP (RFC 4443, RFC
// 792 and 1812) from its own address, so that traceroute and path MTU discovery work. At edges it finds hosts by
// neighbour discovery (RFC 4861) or ARP (RFC 826). It answers what is for itself, or leaves that to the kernel of
// a namespace that its ports have a side in ([emu.Port.SetLocal]), where a routing daemon runs.
//
// Routes come by [Forwarder.SetRoutes], [Forwarder.Add] and [Forwarder.Delete], while packets flow by way of
// [emu.Net.Do].
package forward
