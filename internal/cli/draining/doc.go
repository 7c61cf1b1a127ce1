// Package draining is what becomes of flows where an instance, a host or a program drains: the mode, and how it is watched
// until none is left.
package draining
