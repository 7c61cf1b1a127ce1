package programs

import (
	"fmt"
	"regexp"
	"testing"
)

// chronyConf gives out the machine's own time and does not touch it.
const chronyConf = `
local stratum 3
allow all
bindaddress %[2]s
port 123
cmdport 0
bindcmdaddress /
pidfile %[1]s/chronyd.pid
`

func TestChrony(t *testing.T) {
	s := newService(t, "time")
	for _, host := range []string{"s1", "s2"} {
		dir := place(t)
		s.own(host, dir, "chronyd", "-x", "-d", "-u", "root", "-f", put(t, dir, "chrony.conf", fmt.Sprintf(chronyConf, dir, s.addr)))
	}
	s.serving("udp", 123)
	// Asks four times and says by how much it would set the clock, which both ends share.
	out := client(t, "chronyd", "-Q", "-u", "root", "-t", "20", "server "+s.host+" iburst maxsamples 4", "pidfile "+place(t)+"/pid", "cmdport 0", "bindcmdaddress /")
	if !regexp.MustCompile(`System clock wrong by -?0\.0\d+ seconds \(ignored\)`).MatchString(out) {
		t.Errorf("chronyd -Q:\n%s", tail(out))
	}
}
