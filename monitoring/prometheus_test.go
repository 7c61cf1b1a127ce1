package monitoring_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"scaffold.dev/scaffold/monitoring"
	"scaffold.dev/scaffold/monitoring/promrun"
)

var sequence = regexp.MustCompile(`^([\d.]+)(?:\+(\d+))?x`)

// Each rule fires once in a real Prometheus, which scrapes daemons that are in all the trouble that the rules know.
func TestEachAlertFiresInARealPrometheus(t *testing.T) {
	var scrapes atomic.Int64
	var down atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/controld", func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "gone", http.StatusInternalServerError)
			return
		}
		n := scrapes.Add(1)
		for name, cause := range monitoring.Causes {
			for s := range strings.SplitSeq(cause, ";") {
				series, values, _ := strings.Cut(strings.TrimSpace(s), " => ")
				if strings.HasPrefix(series, "up{") {
					continue // Prometheus' own
				}
				m := sequence.FindStringSubmatch(values)
				if m == nil {
					t.Errorf("%s: %q is no sequence that this test knows", name, values)
					continue
				}
				begin, _ := strconv.ParseFloat(m[1], 64)
				step, _ := strconv.ParseFloat("0"+m[2], 64)
				fmt.Fprintf(w, "%s %g\n", series, begin+step*float64(n))
			}
		}
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://")
	p := promrun.Start(t, map[string][]string{"scaffold-controld": {at + "/controld"}, "scaffold-hostd": {at + "/nobody"}})
	var names []string
	for _, m := range regexp.MustCompile(`(?m)- alert: (\w+)`).FindAllStringSubmatch(string(monitoring.Alerts), -1) {
		names = append(names, m[1])
	}
	lacks := func(firing map[string]string, but string) (missing []string) {
		for _, name := range names {
			text, fires := firing[name]
			if !fires && name != but {
				missing = append(missing, name)
			}
			if strings.Contains(text, "error") && strings.Contains(text, "template") {
				t.Fatalf("%s says %q", name, text)
			}
		}
		return missing
	}
	p.Await("each alert but that for no controller fires", func(firing map[string]string) bool {
		return len(lacks(firing, "ScaffoldControllerDown")) == 0
	})
	down.Store(true)
	p.Await("ScaffoldControllerDown fires", func(firing map[string]string) bool { _, ok := firing["ScaffoldControllerDown"]; return ok })
}
