// Package steer has OpenFlow switches send agents of boost what they carry (docs/protocol.md §9.3): a module of the
// controller that tells it where agents announce themselves, and puts the rules that it is told into the switches.
//
// It decides nothing. Which rules there are follows from lanes, in internal/core/lane; where agents are, and who may be
// told what when, is known to internal/controller/controld/boost.
package steer
