package views

import "scaffold.dev/scaffold/internal/cli/output"

// Trust says what an open network means.
func Trust(trust string) string {
	if trust == "open" {
		return "open: anybody who reaches it may join it"
	}
	return trust
}

// Open ends the list of an open network's members.
func Open(t *output.Table, trust string) {
	if trust == "open" {
		t.Row("(trust: open: anybody who reaches this network may join it)")
	}
}
