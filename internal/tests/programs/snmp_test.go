package programs

import (
	"fmt"
	"strings"
	"testing"
)

func TestSNMP(t *testing.T) {
	s := newService(t, "snmp")
	for i, host := range []string{"s1", "s2"} {
		dir := place(t)
		conf := put(t, dir, "snmpd.conf", "rocommunity6 public\nsysName "+host+"\n")
		listen, start := fmt.Sprintf("udp6:[%s]:161", s.addr), s.own
		if i == 1 {
			listen, start = "udp6:161", s.wild
		}
		start(host, dir, "env", "SNMP_PERSISTENT_DIR="+dir, "MIBS=", "snmpd", "-f", "-Lo", "-C", "-c", conf, "-p", dir+"/pid", listen)
	}
	s.serving("udp", 161)
	env := []string{"env", "SNMP_PERSISTENT_DIR=" + place(t), "MIBS="}
	ask := append(env, "snmpget", "-v2c", "-c", "public", "-Ovq", "udp6:"+s.host, ".1.3.6.1.2.1.1.5.0")
	client(t, ask...) // makes its directory, and says so
	names := map[string]int{}
	for range 20 {
		names[strings.Trim(client(t, ask...), "\"\n")]++
	}
	both(t, "answers of snmpd", names)
	out := client(t, append(env, "snmpbulkwalk", "-v2c", "-c", "public", "-On", "udp6:"+s.host, ".1.3.6.1.2.1.1")...)
	if !strings.Contains(out, ".1.3.6.1.2.1.1.5.0") {
		t.Errorf("snmpbulkwalk:\n%s", tail(out))
	}
}
