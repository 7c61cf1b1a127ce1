package controld

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/controller/controld/config"
	"scaffold.dev/scaffold/internal/core/health"
)

// TestFilesThatAreGoneAreCritical: status, /healthz and the metrics tell it while there is still time for a backup.
func TestFilesThatAreGoneAreCritical(t *testing.T) {
	t.Parallel()
	c := start(t, config.Config{})
	c.says()
	file := filepath.Join(c.data, "etcd", "member", "snap", "db")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if p := c.says(health.StoreDamaged)[0]; !strings.Contains(p.What, file) || !strings.Contains(p.What, "scaffold state backup") {
		t.Errorf("%v: want the file, and what saves the state", p)
	}
	c.create("web") // it goes on
}
