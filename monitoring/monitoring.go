// Package monitoring holds what other programs need to watch a Scaffold network. docs/metrics.md says what metrics mean.
package monitoring

import _ "embed" // the files below

// Alerts are Prometheus' alerting rules, as a rule file.
//
//go:embed alerts.yaml
var Alerts []byte

// Dashboard is a dashboard as Grafana imports it.
//
//go:embed dashboard.json
var Dashboard []byte

// Dissector is a plugin for Wireshark and tshark, in Lua.
//
//go:embed scaffold.lua
var Dissector []byte
