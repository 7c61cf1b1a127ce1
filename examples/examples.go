// Package examples holds the lab files that ship with Scaffold; the demo runs one of them.
package examples

import "embed"

// Files are the lab files by name, such as "web.yaml".
//
//go:embed *.yaml
var Files embed.FS
