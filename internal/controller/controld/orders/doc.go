// Package orders carries out what operators and members order, one change at a time: it is checked in the loop, saved
// outside together with the history's word of who ordered it, and done in the loop then. An answer without error means that
// the change outlives the controller. An order that comes again is not done again.
package orders
