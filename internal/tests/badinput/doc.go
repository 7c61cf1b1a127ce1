// Package badinput is tests only: it gives the whole product what it does not expect - signals at any
// moment, lesser kernels, absent controllers, full disks, clocks that jump - and looks at three things:
// one clear line with the right exit code, nothing lost, nothing left behind.
package badinput
