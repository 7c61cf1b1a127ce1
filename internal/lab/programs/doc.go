// Package programs makes the programs and commands of a lab file what can be started: their variables get values, their files
// are written, and what is part of a service is started as such.
package programs
