package cli

import (
	"bytes"
	"encoding/json"
	"testing"

	"scaffold.dev/scaffold/internal/store"
)

func TestWhatIsInABackupIsJSONForPrograms(t *testing.T) {
	var out bytes.Buffer
	if err := writeValue(&out, stateOf(&store.Backup{BackupHeader: store.BackupHeader{Network: "lab", Records: 3}})); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["network"] != "lab" || got["services"] == nil || got["kinds"] == nil {
		t.Errorf("%s %v: want the network, its records by kind and its services", out.Bytes(), err)
	}
}
