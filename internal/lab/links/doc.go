// Package links is what lies between two nodes of a lab, whether it is a pair of interfaces or the emulator's: a fault is made
// at the right ends of it, and its state and what it carried are told alike.
package links
