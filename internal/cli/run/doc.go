// Package run is `scaffold run`: a program whose wildcard listeners serve a name, which is drained before the program is
// asked to end.
package run
