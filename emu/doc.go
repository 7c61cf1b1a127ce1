// Package emu emulates links: rate, delay, jitter, loss, duplication and reordering between two
// network interfaces, in each direction for itself, settable while packets are in flight.
//
// The heart is [Line], one direction of a link. It has no clock and touches no packet: time and the
// sizes of frames are arguments, due parts of frames are results. Every decision is drawn from a
// seed and the number of the packet alone, so the same seed loses the same packets, at any speed, in
// virtual time as in real time.
//
// [Engine] drives links in real time. Each end is a TAP interface inside a network namespace, with
// segmentation and checksum offload: a train of segments that the kernel sends as one frame crosses
// as one frame where the link's rate allows, is cut where it does not, and is lost segment by segment.
package emu
