package hostd

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

// fetch is what the host answers at an address of its namespace, with the code in front.
func (l *link) fetch(url string) string {
	client := &http.Client{Transport: &http.Transport{DialContext: func(_ context.Context, network, addr string) (net.Conn, error) {
		return l.host.Dial(network, addr)
	}}}
	defer client.CloseIdleConnections()
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, _ := io.ReadAll(answer.Body)
	return fmt.Sprintln(answer.StatusCode) + string(body)
}

func (l *link) says(t *testing.T, url string, want ...string) {
	t.Helper()
	nstest.Wait(t, url, func() error {
		text := l.fetch(url)
		for _, w := range want {
			if !strings.Contains(text, w) {
				return fmt.Errorf("no %q in %q", w, text)
			}
		}
		return nil
	})
}

func TestMetricsAndHealthTellHowTheHostStands(t *testing.T) {
	l := newLink(t)
	d := l.start(t, func(c *Config) { c.Metrics = "[::1]:9464" })
	l.program(t, 80)
	l.controller.until(t, d, "port 80 ready", ready(80, true))
	l.says(t, "http://[::1]:9464/healthz", "200\n")
	l.says(t, "http://[::1]:9464/metrics", "scaffold_hostd_joined 1\n", `scaffold_hostd_uplink_up{interface="up0"} 1`,
		`scaffold_hostd_registrations{state="ready"} 1`, "scaffold_hostd_joins_total 1\n", "scaffold_hostd_edge_packets_total{")
	if text := l.fetch("http://[::1]:9464/debug/pprof/"); !strings.HasPrefix(text, "404") {
		t.Errorf("the address serves more than metrics and health: %q", text)
	}
	l.host.Run(t, "ip", "link", "set", "up0", "down")
	l.says(t, "http://[::1]:9464/healthz", "503\n", "up0")
	l.says(t, "http://[::1]:9464/metrics", "scaffold_hostd_joined 0\n", `scaffold_hostd_uplink_up{interface="up0"} 0`)
}
