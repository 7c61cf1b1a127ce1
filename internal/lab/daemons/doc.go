// Package daemons has the command lines of Scaffold's daemons in a lab, and what programs beside them see of them. All of it
// follows from the lab's plan and from where the lab keeps its files.
package daemons
