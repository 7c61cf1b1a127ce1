package state

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/output"
	"scaffold.dev/scaffold/internal/controller/store"
)

func TestWhatIsInABackupIsJSONForPrograms(t *testing.T) {
	var out bytes.Buffer
	if err := output.WriteValue(&out, stateOf(&store.Backup{BackupHeader: store.BackupHeader{Network: "lab", Records: 3}})); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got["network"] != "lab" || got["services"] == nil || got["kinds"] == nil {
		t.Errorf("%s %v: want the network, its records by kind and its services", out.Bytes(), err)
	}
}

// A restore waits for an etcd that is not there; who has enough of that is not told of the etcd.
func TestARestoreThatIsInterruptedSaysSo(t *testing.T) {
	away := fmt.Errorf("store: %w: %w", store.ErrAway, context.Canceled)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	for _, c := range []struct {
		code exit.Code
		say  string
	}{{exit.Unreachable, "scaffold: store: no etcd answers: context canceled\n"}, {exit.Failed, "scaffold: interrupted: the backup is not restored\nhint: the same command begins it anew\n"}} {
		var stderr strings.Builder
		if code := exit.Report(&stderr, explainRestore(ctx, away), nil); code != int(c.code) || stderr.String() != c.say {
			t.Errorf("exit code %d and %q, want %d and %q", code, stderr.String(), c.code, c.say)
		}
		interrupt()
	}
}
