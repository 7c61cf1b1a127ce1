package routerd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// Prometheus reaches the metrics over the management network.
func TestMetricsAreServedAtAnAddress(t *testing.T) {
	nstest.Root(t)
	s := newSite(t)
	s.cfg.Metrics = "[fd00::1]:9464"
	start(t, s.router, s.cfg)
	client := &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
		return s.router.Dial(network, addr)
	}}}
	defer client.CloseIdleConnections()
	want := []string{"packets_total", "hosts{", "links{", "routes ", "services ", "instances ", "table_bytes ", "joined ", "generation "}
	nstest.Wait(t, "all metrics at "+s.cfg.Metrics, func() error {
		text := fetch(client, "http://"+s.cfg.Metrics+"/metrics")
		for _, name := range want {
			if !strings.Contains(text, "\nscaffold_routerd_"+name) {
				return fmt.Errorf("no %s in %q", name, text)
			}
		}
		return nil
	})
	if text := fetch(client, "http://"+s.cfg.Metrics+"/status"); strings.Contains(text, "neighbours") {
		t.Error("the address serves more than metrics and health")
	}
}

// fetch returns "" for what cannot be reached yet.
func fetch(client *http.Client, url string) string {
	answer, err := client.Get(url)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	return string(text)
}
