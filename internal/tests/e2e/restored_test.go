package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The controller is lost, and begins again from a backup of before its hosts moved: they keep what they have today, and
// their flows go on and move.
func TestStateOfBeforeAMoveIsRestoredUnderLiveFlows(t *testing.T) {
	m := theMobile(t)
	talks := m.talks(600)
	backup := filepath.Join(t.TempDir(), "yesterday.state")
	m.must("ctl", "state", "backup", backup, "--lab", m.lab.File.Name)
	m.hop("c1", "gap 50ms")
	m.hop("s2", "gap 50ms")
	m.goOn("the moves that the backup does not have", talks...)
	m.settled()
	today := map[string]any{"c1": m.locator("c1"), "s1": m.locator("s1"), "s2": m.locator("s2")}

	m.kill("ctl/controld")
	data := m.lab.ProgramDir("ctl", "data")
	if err := os.RemoveAll(data); err != nil {
		t.Fatal(err)
	}
	if out := m.must("ctl", "state", "restore", backup, "--data", data); !strings.Contains(out, "is restored") {
		t.Errorf("restore says %s", out)
	}
	m.goOn("the loss of the controller", talks...)
	m.do("start ctl/controld")
	m.settled()
	for host, at := range today {
		if now := m.locator(host); now != at {
			t.Errorf("%s was at %v before the state of yesterday, and is at %v", host, at, now)
		}
	}
	// Its exit code judges the whole lab, in which services of other tests have nobody left who serves them.
	if out, _ := m.run("ctl", self, "status", "--lab", m.lab.File.Name); !strings.Contains(out, "restored") {
		t.Errorf("status does not say that the state was restored:\n%s", out)
	}
	m.hop("c1", "gap 50ms")
	m.hop("s2", "gap 50ms")
	m.goOn("moves after the state was restored", talks...)
}
