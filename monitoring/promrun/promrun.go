// Package promrun runs a real Prometheus with the shipped rules, for tests: it scrapes what the test serves, and waits for
// nothing that the rules would wait for.
package promrun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/monitoring"
)

// every is how often it scrapes and looks at its rules.
const every = "200ms"

// A Server is one that runs.
type Server struct {
	t   testing.TB
	url string
	out *bytes.Buffer
}

// Start runs it until the test ends. jobs are the targets, host:port/path, by the name of their job. Alerts fire as soon
// as their expression holds.
func Start(t testing.TB, jobs map[string][]string) *Server {
	t.Helper()
	dir := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: %s, scrape_timeout: %s, evaluation_interval: %s}\nrule_files: [rules.yaml]\nscrape_configs:\n", every, every, every)
	for job, targets := range jobs {
		for _, target := range targets {
			address, path, _ := strings.Cut(target, "/")
			config += fmt.Sprintf("  - {job_name: %q, honor_labels: true, metrics_path: %q, static_configs: [{targets: [%q]}], relabel_configs: [{target_label: job, replacement: %q}]}\n",
				job+" of "+target, "/"+path, address, job)
		}
	}
	rules := regexp.MustCompile(`(?m)^ +for: .*\n`).ReplaceAll(monitoring.Alerts, nil)
	for name, text := range map[string][]byte{"prometheus.yaml": []byte(config), "rules.yaml": rules} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, url: "http://" + l.Addr().String(), out: new(bytes.Buffer)}
	l.Close()
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+strings.TrimPrefix(s.url, "http://"), "--log.level=warn")
	cmd.Stdout, cmd.Stderr = s.out, s.out
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v: this test wants the Debian package prometheus", err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() // Wait says how it ended
		cmd.Wait()         //nolint:errcheck // by that
		if t.Failed() {
			t.Logf("prometheus said:\n%s", s.out)
		}
	})
	return s
}

// Firing are the alerts that fire, by name, with their summaries; nil while it does not answer.
func (s *Server) Firing() map[string]string {
	resp, err := http.Get(s.url + "/api/v1/alerts")
	if err != nil {
		return nil
	}
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Alerts []struct {
				State               string
				Labels, Annotations map[string]string
			}
		}
	}
	if json.NewDecoder(resp.Body).Decode(&answer) != nil {
		return nil
	}
	firing := map[string]string{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			firing[a.Labels["alertname"]] = a.Annotations["summary"] + "; " + a.Annotations["action"]
		}
	}
	return firing
}

// patience ends a wait for what never comes.
const patience = 60 * time.Second

// settled is how many scrapes of a target come before it is said that nothing fires: the rules are looked at as often.
const settled = 4

// Scraped waits until each target of the job has been scraped, and the rules have been looked at since.
func (s *Server) Scraped(job string) {
	s.t.Helper()
	query := s.url + "/api/v1/query?query=" + url.QueryEscape(fmt.Sprintf(`min(sum_over_time(up{job=%q}[1h])) >= %d`, job, settled))
	var said []byte
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(query)
		if err != nil {
			continue // it begins
		}
		said, _ = io.ReadAll(resp.Body) // what came is enough
		resp.Body.Close()
		if strings.Contains(string(said), `"value":[`) {
			return
		}
	}
	s.t.Fatalf("waited %v in vain until %s was scraped: %s", patience, job, said)
}

// Await waits until ok says that these are the alerts that should fire.
func (s *Server) Await(what string, ok func(firing map[string]string) bool) {
	s.t.Helper()
	var last map[string]string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if last = s.Firing(); last != nil && ok(last) {
			return
		}
	}
	s.t.Fatalf("waited %v in vain until %s; what fires: %v", patience, what, last)
}
