package tunnels_test

import (
	"crypto/ed25519"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/netip"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/host/tunnels"
	"scaffold.dev/scaffold/internal/host/underlay"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

func TestMain(m *testing.M) { nstest.Main(m) }

// saved is what an earlier daemon has left.
type saved map[string][]byte

func (s saved) Read(name string, v any) bool { return json.Unmarshal(s[name], v) == nil }

func (s saved) WriteJSON(string, any) error { return nil }

func (s saved) Remove(string) {}

// The interface of an earlier daemon's tunnel goes after this one has found it, as that of a WireGuard process that was
// killed a moment ago: nothing is sent by the one that is made in its stead before it is known what it carries.
func TestATunnelWhoseInterfaceGoesIsNotReadyWhileAnotherIsMade(t *testing.T) {
	const name = "sct0"
	port := underlay.Port{Name: name, Number: 7, Local: netip.MustParseAddr("192.0.2.1"), Remote: netip.MustParseAddr("192.0.2.2"),
		UDP: underlay.VXLAN.DefaultPort(), MTU: 1450, Whole: true, Note: underlay.Note("h", name, underlay.VXLAN)}
	end, err := json.Marshal(tunnels.End{Port: port, Kind: underlay.VXLAN, Router: "r", BootID: "this"})
	if err != nil {
		t.Fatal(err)
	}
	controller, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer controller.Close()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	news := make(chan func(), 8)
	ns := nstest.New(t, "host")
	ns.Addr(t, "lo", port.Local.String()+"/32")
	var all *tunnels.Tunnels
	ns.Do(func() {
		if err = port.Make(-1); err == nil {
			err = port.Start()
		}
		if err != nil {
			return
		}
		all, err = tunnels.Open(tunnels.Config{
			Log: slog.New(slog.DiscardHandler), Host: "h", BootID: "this", Files: saved{"tunnel-" + name + ".json": end},
			Controllers: api.NewControllers([]string{controller.Addr().String()}),
			TLS:         func() (*tls.Config, error) { return nil, nil }, Key: func() ed25519.PrivateKey { return key },
			Post: func(f func()) { news <- f }, Changed: func() {}, Resized: func() {},
		}, map[string][]underlay.Kind{name: {underlay.VXLAN}}, false)
	})
	if err != nil {
		t.Fatal(err)
	}
	if ready, said := all.At(name).Ready(); !ready {
		t.Fatalf("the tunnel of the earlier daemon is not taken over: %s", said)
	}
	all.Keep(t.Context())         // in the namespace of this process, where there is no such interface
	c, err := controller.Accept() // it asks for another
	if err != nil {
		t.Fatal(err)
	}
	if ready, _ := all.At(name).Ready(); ready {
		t.Error("the tunnel is ready while there is none")
	}
	select {
	case <-news:
	default:
		t.Error("nobody was told that the tunnel is gone")
	}
	c.Close()
	<-all.End()
}
