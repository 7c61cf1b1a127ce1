// Package plan says what has to be built for a lab file: names of interfaces, numbers, addresses, routes, tunnels, and
// what of the machine that takes.
//
// [Make] computes it without touching the machine, the same each time, so a plan is made anew whenever it is needed.
package plan
