// Package labapi offers what `scaffold lab` does over HTTP and JSON, for programs in any language and for the web
// view: labs come up and go, commands run in their nodes, links change, timelines run. docs/lab-api.md lists every
// path and field; what the commands print with `-o json` has the same shapes here.
//
// Whoever reaches the API runs commands as root. It belongs on a Unix socket, or on loopback behind a token.
package labapi
