package divert

import (
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

func load(t testing.TB) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := loadDivert()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// router is a namespace with two ports, which forwards both families.
func router(t testing.TB) (n *nstest.NS, ports []int) {
	t.Helper()
	n, ends := nstest.New(t, "router"), nstest.New(t, "ends")
	nstest.Veth(t, n, "p0", ends, "e0")
	nstest.Veth(t, n, "p1", ends, "e1")
	n.Forward(t)
	n.Sysctl(t, "net/ipv4/ip_forward", "1")
	return n, []int{n.Index(t, "p0"), n.Index(t, "p1")}
}

func open(t testing.TB, cfg Config) *Diverter {
	t.Helper()
	n, ports := router(t)
	cfg.Ports = ports
	return openIn(t, n, cfg)
}

func openIn(t testing.TB, n *nstest.NS, cfg Config) (d *Diverter) {
	t.Helper()
	if cfg.Pin == "" {
		cfg.Pin = filepath.Join(nstest.BPFFS, filepath.Base(t.Name()))
	}
	n.Do(func() {
		var err error
		if d, err = Open(cfg); err != nil {
			t.Fatalf("%+v", err)
		}
	})
	t.Cleanup(func() { d.Close() })
	return d
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestProgramsLoad(t *testing.T) {
	d := open(t, Config{})
	if all, err := d.Counters(); err != nil || len(all) != len(reasons)-1 {
		t.Errorf("counters %v, %v", all, err)
	}
}
