// Package examples holds the lab files that ship with Scaffold, and the maps that they name; the demo runs
// one of them.
package examples

import "embed"

// Files are the lab files and maps by name, such as "web.yaml".
//
//go:embed *.yaml *.graphml
var Files embed.FS
