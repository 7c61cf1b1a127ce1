// Package emu emulates networks: many programmable routers and the links between them in one process, with
// the interfaces of real namespaces at the edge, after MX (Knezevic, Schubert and Kostic).
//
// A [Net] holds routers, edges and links. A [Router] runs a [Program], which decides where packets go; programs may be
// users' own, in Go modules of their own. A [Link] joins two nodes, with rate, delay, jitter, loss, duplication and
// reordering for each direction, settable while packets are in flight. An [Edge] is an interface in a network
// namespace, with segmentation and checksum offload: a train of segments that the kernel sends as one frame crosses
// as one frame where a link's rate allows, is cut where it does not, and is lost segment by segment.
//
// The heart of a link is [Line], one direction. It has no clock and touches no packet: time and the sizes of frames
// are arguments, due parts of frames are results. Every decision is drawn from a seed and the number of the packet
// alone, so the same seed loses the same packets, at any speed, in virtual time as in real time.
//
// Time is the machine's for real programs at edges ([Net.Start]), or virtual for traffic that programs make
// ([Net.Run]): then a run is the same each time, needs no root and goes as fast as the machine can.
package emu
