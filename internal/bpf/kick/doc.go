// Package kick reads the state of this namespace's TCP connections from the kernel and makes those that
// wait for a retransmission timer send at once, after the path under them has changed.
//
// Two states of the kernel need two kicks. Data is in flight and its timer has backed off (always so at
// the end that did not move): an ICMPv6 "no route" that quotes the first unacknowledged byte takes back
// one doubling of the timer (RFC 6069), so it is sent once more often than the timer was doubled. Nothing
// is in flight because the host itself had no route: the kernel then waits in the timer of zero-window
// probes, and a duplicate acknowledgement makes it send what is queued. Both packets are made here, go to
// the local socket by the loopback and never leave the host. A connection that waits for its peer's window is left
// to the kernel's probes.
//
// In the second state the kernel gives a connection up after 7.5 seconds if it is the host's own queue that takes
// nothing: where the timers of thousands fire at once, those at the end of each burst find it full each time. Who
// looks for Choked ones and kicks them loses none.
//
// A few connections are looked at one by one, 20 µs each; of many, a pass over the kernel's table tells, which the
// whole machine shares: milliseconds. Of a pass no more is in memory than the kernel gives at a time.
package kick
