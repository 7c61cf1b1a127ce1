package obs

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	body, _ := io.ReadAll(rec.Body)
	return rec.Code, string(body)
}

func TestLoggerKnowsItsFormatsAndLevels(t *testing.T) {
	for _, c := range []struct {
		format, level string
		ok            bool
	}{{"", "", true}, {"text", "debug", true}, {"JSON", "Warn", true}, {"xml", "info", false}, {"text", "loud", false}, {"text", "info+2", false}} {
		if _, err := NewLogger(io.Discard, c.format, c.level); (err == nil) != c.ok {
			t.Errorf("NewLogger(%q, %q): %v", c.format, c.level, err)
		}
	}
}

func TestLoggerLeavesOutWhatIsBelowItsLevel(t *testing.T) {
	var out bytes.Buffer
	log, err := NewLogger(&out, "json", "warn")
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud", "host", "h1")
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil || line["msg"] != "loud" || line["host"] != "h1" {
		t.Errorf("log = %q, %v; want the warning alone, as JSON", out.String(), err)
	}
}

func TestMetricsAreExportedUnderTheDaemonsName(t *testing.T) {
	m := NewMetrics("hostd")
	m.Counter("joins_total", "Times joined.").Inc()
	m.Counter("joins_total", "Times joined.").Add(2) // the same one
	m.Gauge("flows", "Live flows.", "role").Set(7, "client")
	m.Gauge("flows", "Live flows.", "role").Set(9, "server")
	m.Gauge("flows", "Live flows.", "role").Forget("server")
	m.Histogram("wait_seconds", "Waited.", []float64{1, 2}).Observe(1.5)
	m.GaugeFunc("asked", "Asked.", func() float64 { return 5 })
	m.CounterFunc("seen_total", "Seen.", func() float64 { return 6 })
	m.CounterMap("drops_total", "Drops.", "reason", func() (map[string]uint64, error) {
		return map[string]uint64{"no flow": 3}, nil
	})
	_, body := get(t, m.Handler(), "/metrics")
	for _, want := range []string{"scaffold_hostd_joins_total 3\n", `scaffold_hostd_flows{role="client"} 7`,
		`scaffold_hostd_wait_seconds_bucket{le="2"} 1`, "scaffold_hostd_asked 5", "scaffold_hostd_seen_total 6",
		`scaffold_hostd_drops_total{reason="no flow"} 3`, "go_goroutines"} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %q in\n%s", want, body)
		}
	}
	if strings.Contains(body, `role="server"`) {
		t.Error("a forgotten gauge is still exported")
	}
}

func TestOneFailingFamilyDoesNotTakeTheScrapeWithIt(t *testing.T) {
	m := NewMetrics("routerd")
	m.Counter("fine_total", "Fine.").Inc()
	m.CounterMap("bad_total", "Bad.", "reason", func() (map[string]uint64, error) { return nil, errors.New("map gone") })
	if code, body := get(t, m.Handler(), "/metrics"); code != 200 || !strings.Contains(body, "scaffold_routerd_fine_total 1") {
		t.Errorf("scrape = %d\n%s", code, body)
	}
}

func TestSameNameWithAnotherTypePanics(t *testing.T) {
	m := NewMetrics("hostd")
	m.Counter("x_total", "X.")
	defer func() {
		if recover() == nil {
			t.Error("a gauge took a counter's name without a word")
		}
	}()
	m.Gauge("x_total", "X.")
}

func TestHealthNamesWhatIsWrong(t *testing.T) {
	var h Health
	handler := Handler(NewMetrics("hostd"), &h, true)
	if code, body := get(t, handler, "/healthz"); code != 200 || !strings.Contains(body, `"healthy":true`) {
		t.Errorf("fresh: %d %s", code, body)
	}
	h.Set("controller", errors.New("unreachable"))
	if code, body := get(t, handler, "/healthz"); code != 503 || !strings.Contains(body, "unreachable") {
		t.Errorf("unreachable controller: %d %s", code, body)
	}
	h.Set("controller", nil)
	if code, _ := get(t, handler, "/healthz"); code != 200 {
		t.Errorf("recovered: %d", code)
	}
}

func TestProfilesOnlyWhereAsked(t *testing.T) {
	var h Health
	m := NewMetrics("hostd")
	if code, _ := get(t, Handler(m, &h, false), "/debug/pprof/"); code != 404 {
		t.Errorf("profiles off: %d", code)
	}
	if code, _ := get(t, Handler(m, &h, true), "/debug/pprof/"); code != 200 {
		t.Errorf("profiles on: %d", code)
	}
}

func TestVersionIsNeverEmpty(t *testing.T) {
	if Version() == "" {
		t.Error("empty version")
	}
}

func TestNoServiceManagerIsNoTrouble(t *testing.T) {
	for _, path := range []string{"", t.TempDir() + "/nobody"} {
		t.Setenv("NOTIFY_SOCKET", path)
		TellManager("READY=1")
	}
}
