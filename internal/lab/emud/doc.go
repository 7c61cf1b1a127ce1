// Package emud is the process that a lab's emulated network lives in: it builds the network of package emu from a
// configuration, answers on a Unix socket, feeds routers with routes, and carries out faults.
//
// A lab starts it ([Run]) and asks it ([Client]) what v1/emulator.proto says can be asked. It ends with its context, and
// its interfaces with it.
package emud
