package main

import (
	"os"
	"path/filepath"
	"testing"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

// What check-generated finds on machines with protoc is found on others, too.
func TestTheClientsTablesAreThoseOfTheSchema(t *testing.T) {
	for _, path := range []string{"clients/python/scaffold_lab/_schema.py", "internal/lab/dash/page/schema.js"} {
		have, err := os.ReadFile(filepath.Join("../../../..", path))
		if err != nil || string(have) != tables(labv1.File_lab_proto, path) {
			t.Errorf("%s is not as lab.proto says (%v): run scripts/go.sh generate ./internal/lab/v1", path, err)
		}
	}
}
