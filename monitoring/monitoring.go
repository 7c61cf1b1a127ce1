// Package monitoring holds what other programs need to watch a Scaffold network.
package monitoring

import _ "embed" // the files below

// Dissector is a plugin for Wireshark and tshark, in Lua.
//
//go:embed scaffold.lua
var Dissector []byte
