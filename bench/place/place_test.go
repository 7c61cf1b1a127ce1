package place_test

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scaffold.dev/scaffold/bench/place"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

func TestPlacesAreNetworksOfTheirOwn(t *testing.T) {
	nstest.Root(t)
	ctx := t.Context()
	a, err := place.New()
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := place.New()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := a.IP(ctx, b, "link add one type veth peer name two netns %far", "link set one up"); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(b.Path())
	if err != nil {
		t.Fatal(err)
	}
	again, err := place.Enter(f) // the same one
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for p, dev := range map[*place.Place]string{a: "one", b: "two", again: "two"} {
		out, err := p.Run(ctx, exec.Command("ip", "-brief", "link"))
		if err != nil || !strings.Contains(out, dev+"@") || strings.Count(out, "\n") != 2 {
			t.Errorf("%v: %q", err, out)
		}
		if err := p.In(func() error { _, err := net.InterfaceByName(dev); return err }); err != nil {
			t.Error(err)
		}
	}
	if err := a.IP(ctx, nil, "link set nothing up"); err == nil || !strings.Contains(err.Error(), "link set nothing up") {
		t.Errorf("an interface that is not there: %v", err)
	}
	if err := a.Set(map[string]string{"ipv6/conf/one/hop_limit": "7", "ipv6/conf/none/x": "1"}); err == nil {
		t.Error("a setting that is not there was set")
	}
}
