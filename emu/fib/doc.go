// Package fib finds the way of a packet through a router: the longest prefix that fits its destination.
//
// [Table] is the table of one router, over IPv6 and IPv4, small and fast enough for a router that has nanoseconds
// for a packet. [Classes] goes further: the prefixes of all routers together divide the destinations into classes.
// A packet's class is found once, where it enters; each router then finds the way with one load from a dense
// slice. The result is that of the tables at every moment, also for packets that are under way while routes change.
//
// Nothing here locks. A Table belongs to one thread, which both asks and changes it; what is shared by several
// threads and how it may change is said at [Classes].
package fib
