// Package pushes tells routers their rules, and knows how far each is with what it was told. A change has a generation of
// its own, so that a router that reports the last one has them all; a router that begins gets everything at once. Who waits
// until routers have applied a change waits here.
package pushes
