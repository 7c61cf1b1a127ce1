// Package daemons is the daemons as commands: their flags, what is refused before one starts, and how one hands over to the
// next. What they do is in internal/controller, internal/router and internal/host.
package daemons
