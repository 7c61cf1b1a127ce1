package diagnosis

import (
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/cli/remote/remotetest"
)

func TestADumpLooksIntoTheOnlyLab(t *testing.T) {
	const lab1, lab2 = "lab/one/ctl/controld.sock", "lab/two/h1/hostd.sock"
	for _, c := range []struct {
		sockets         []string
		named, lab, say string
	}{
		{[]string{"hostd.sock", lab1}, "", "", ""},
		{[]string{"hostd.sock", lab1}, "one", "one", ""},
		{[]string{"dead.sock", lab1, "lab/dead/ctl/controld.sock"}, "", "one", "the archive has lab one"},
		{[]string{lab1, lab2}, "", "", "--lab NAME looks into a lab: one, two"},
		{nil, "", "", "no lab runs here"},
	} {
		f := &supportFlags{Remote: remotetest.Machine(t, c.sockets...)}
		f.Lab = c.named
		if lab, why := f.only(); lab != c.lab || !strings.Contains(why, c.say) || c.say == "" && why != "" {
			t.Errorf("%q: lab %q, said %q; want %q, %q", c.sockets, lab, why, c.lab, c.say)
		}
	}
}
