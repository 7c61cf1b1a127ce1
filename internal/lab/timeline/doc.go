// Package timeline says when the steps, measurements and readings of a lab file are due, and keeps what they gave: the result
// of a run, with its figure. What a step does and how a link is counted is for the network to know that it is played in.
package timeline
