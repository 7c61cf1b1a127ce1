package ofctl

import (
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// What is written here is what ovs-ofctl itself takes, and it means the same to it.
func TestOpenVSwitchReadsWhatIsWritten(t *testing.T) {
	ofctl := nstest.Program(t, "ovs-ofctl", "openvswitch-common")
	read := func(match, actions string) string {
		t.Helper()
		flow := "actions=" + actions
		if match != "any" && match != "" {
			flow = match + "," + flow
		}
		out, err := exec.Command(ofctl, "-vconsole:off", "-O", "OpenFlow15", "parse-flow", flow).CombinedOutput()
		if err != nil {
			t.Errorf("ovs-ofctl parse-flow %q: %s", flow, out)
		}
		return string(out)
	}
	for _, c := range good {
		m, err := ParseMatch(c.match, ports)
		if err != nil {
			t.Fatal(err)
		}
		as, err := ParseActions(c.actions, m, ports)
		if err != nil {
			t.Fatal(err)
		}
		text, numbers := Match(m, nil)+" "+Actions(as, nil), Ports{}
		if again, err := ParseMatch(Match(m, nil), numbers); err != nil || len(again) != len(m) {
			t.Errorf("%s is read as %v, %v", text, again, err)
		}
		said := read(Match(m, nil), Actions(as, nil))
		for _, o := range m { // it shows what it understood in words of its own; the values are there
			_, value, _ := strings.Cut(o.String(), "=")
			if len(value) > 6 && !strings.Contains(said, value) {
				t.Errorf("%s: ovs-ofctl has no %s in %s", text, value, said)
			}
		}
	}
}
