package verdict

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/health"
	"scaffold.dev/scaffold/internal/operate/obs"
)

// fresh has the next question looked into anew.
func (w *Watch) fresh() *Watch {
	w.Again()
	return w
}

func (w *Watch) get(t *testing.T) (code int, body string) {
	t.Helper()
	rec := httptest.NewRecorder()
	w.ServeHTTP(rec, httptest.NewRequest("GET", "/healthz", nil))
	if !json.Valid(rec.Body.Bytes()) {
		t.Errorf("no JSON: %s", rec.Body)
	}
	return rec.Code, rec.Body.String()
}

func TestWhoeverAsksIsToldTheSame(t *testing.T) {
	s := health.Snapshot{Now: time.Unix(1e9, 0)}
	w := New(func(context.Context) health.Snapshot { return s })
	m := obs.NewMetrics("x")
	w.Export(m)
	metric := func(line string) bool {
		rec := httptest.NewRecorder()
		m.Handler().ServeHTTP(rec, httptest.NewRequest("GET", "/metrics", nil))
		return strings.Contains(rec.Body.String(), line+"\n")
	}
	if code, body := w.get(t); code != 200 || !strings.Contains(body, `"healthy":true,"verdict":"ok"`) {
		t.Errorf("well: %d %s", code, body)
	}
	if !metric(`scaffold_x_problems{kind="host.silent",severity="warning"} 0`) {
		t.Error("a kind that is not there is not exported as 0")
	}
	s.Hosts = []health.Host{{Name: "s1", Silent: true}, {Name: "s2", Silent: true}}
	if code, body := w.fresh().get(t); code != 200 || !strings.Contains(body, `"verdict":"warning"`) || !strings.Contains(body, "host s1 does not answer") {
		t.Errorf("warnings: %d %s", code, body)
	}
	if !metric(`scaffold_x_problems{kind="host.silent",severity="warning"} 2`) {
		t.Error("the metrics do not count two hosts")
	}
	s.Routers = []health.Router{{Name: "r1", Away: true}}
	if code, body := w.fresh().get(t); code != 503 || !strings.Contains(body, `"healthy":false`) || !strings.Contains(body, `"router.away":"router r1`) {
		t.Errorf("critical: %d %s", code, body)
	}
	list := ToAPI(w.fresh().Problems(t.Context()))
	if len(list) != 3 || list[0].Kind != "router.away" || Worst(list) != health.Critical || list[0].Since != "2001-09-09T01:46:40Z" {
		t.Errorf("by the API: %v", list)
	}
}

func TestAProblemIsAsOldAsItIs(t *testing.T) {
	s := health.Snapshot{Now: time.Unix(1000, 0), Routers: []health.Router{{Name: "r1", Away: true}}}
	w := New(func(context.Context) health.Snapshot { return s })
	began := func() int64 {
		t.Helper()
		all := w.fresh().Problems(t.Context())
		if len(all) != 1 {
			t.Fatalf("%v", all)
		}
		return all[0].Since.Unix()
	}
	began()
	if s.Now = time.Unix(1060, 0); began() != 1000 {
		t.Error("it was forgotten since when the router is away")
	}
	s.Routers[0].Since = time.Unix(900, 0)
	if began() != 900 {
		t.Error("what is known is not believed")
	}
	s.Routers[0].Away = false
	w.fresh().Problems(t.Context())
	s.Routers[0] = health.Router{Name: "r1", Away: true}
	if s.Now = time.Unix(1100, 0); began() != 1100 {
		t.Error("an absence that ended counts for the next one")
	}
}

func TestWhatTwoDaemonsSayIsToldOnce(t *testing.T) {
	a := []*apiv1.Problem{{Severity: "warning", Kind: "host.silent", Where: "s1", What: "a"}}
	b := []*apiv1.Problem{{Severity: "critical", Kind: "daemon.alone", Where: "r1"}, {Severity: "warning", Kind: "host.silent", Where: "s1", What: "b"}}
	all := Merge(a, b)
	if len(all) != 2 || all[0].Kind != "daemon.alone" || all[1].What != "a" {
		t.Errorf("%v", all)
	}
}
