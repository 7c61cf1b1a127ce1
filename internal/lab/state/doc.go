// Package state is where a lab keeps its files, and what it writes down of itself before it makes anything, so that all of
// it is found and removed after a crash. One process at a time may change a lab: the one that holds its lock.
package state
