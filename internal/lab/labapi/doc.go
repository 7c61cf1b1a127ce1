// Package labapi answers what internal/lab/v1/lab.proto says can be asked of labs, for programs in any language and for
// the web view: labs come up and go, commands run in their nodes, links change, timelines run. What the commands print
// with `-o json` has the shapes of the schema's messages. docs/lab-api.md shows calls.
//
// Whoever reaches the API runs commands as root. It belongs on a Unix socket, or on loopback behind a token.
package labapi
