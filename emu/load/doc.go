// Package load has routers that tell senders how loaded the path is, and a sender that obeys: the example by which MX
// argues for programmable routers.
//
// It is the Variable-structure Congestion control Protocol (Xia, Subramanian, Stoica and Kalyanaraman, "One more bit
// is enough", SIGCOMM 2005). A [Router] measures the load of each link that it sends to: what arrived for it in an
// interval, and half of the queue that stood all that time, against what the link can carry. It writes the load into
// the two bits of ECN of each packet, if it is more than what is there already: a receiver sees the highest load on
// the path. The receiver gives it back, and the sender's [Window] grows by a factor at low load, by a step at high
// load, and shrinks by a factor at overload.
//
// [Sender] and [Receiver] are programs for generated traffic, of IPv6. A blind window grows and shrinks as that of TCP Reno,
// for comparison.
package load
