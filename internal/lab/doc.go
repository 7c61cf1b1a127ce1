// Package lab runs whole Scaffold networks on one machine: hosts, routers and a controller, each in a
// network namespace, joined by veth pairs, with unmodified programs and a timeline of what happens
// to them.
//
// A lab file (YAML) is read by package file, turned into names, addresses and routes by package plan,
// and brought up by [Up]. Everything that a lab makes carries its name
// and is written down in its state directory before it is made, so that what a crash leaves behind
// is found and removed by the next [Up] or [Down].
package lab
