package labapi_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/labapi"
	"scaffold.dev/scaffold/internal/nstest"
)

func TestWhatIsWrongIsToldWithItsStatus(t *testing.T) {
	r := serve(t, labapi.Config{Dir: t.TempDir()})
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/v1/nothing", "", 404, "/v1/nothing: there is no such path"},
		{"PUT", "/v1/labs", "", 405, "PUT /v1/labs: this path takes DELETE, GET, HEAD, POST"},
		{"POST", "/v1/check", "{", 400, "line 1: unexpected EOF"},
		{"POST", "/v1/check", "{\n\"source\": x}", 400, "line 2: invalid character 'x'"},
		{"POST", "/v1/check", `{"source": 3}`, 400, "cannot unmarshal number"},
		{"POST", "/v1/check", `{"sauce": "x"}`, 400, `unknown field "sauce"`},
		{"POST", "/v1/check", `{} {}`, 400, "goes on after its JSON"},
		{"POST", "/v1/check", "", 400, "expected its text as"},
		{"POST", "/v1/labs", "null", 400, "expected its text as"},
		{"POST", "/v1/runs", `{"source": "nodes: ["}`, 422, "not YAML"},
		{"POST", "/v1/figures", `{"format": "svg"}`, 400, "expected either"},
		{"POST", "/v1/figures", `{"format": "pdf", "figure": {"title": "x", "end": 1, "panels": [{}]}}`, 400, "expected svg or png"},
		{"POST", "/v1/figures", `{"format": "svg", "figure": {"title": "x", "end": 0, "panels": [{}]}}`, 400, "axis ends at 0"},
		{"POST", "/v1/figures", `{"format": "svg", "figure": {"title": "x"}}`, 400, "nothing was measured"},
	} {
		status, text := r.ask(c.method, c.path, c.body)
		var f labapi.Fault
		if err := json.Unmarshal(text, &f); err != nil || status != c.status || f.Status != c.status || !strings.Contains(f.Error, c.says) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, status, text, c.status, c.says)
		}
	}
}

func TestMistakesInAFileAreKeptApart(t *testing.T) {
	r := serve(t, labapi.Config{})
	status, text := r.ask("POST", "/v1/check", labapi.FileRequest{Path: "/x/a.yaml", Source: "nodes:\n  ctl: controller\n  r: {kind: router, service: true}\nlinks:\n  - [r, x]\n  - [r, y]\n"})
	var f labapi.Fault
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	want := []labapi.FaultLine{
		{File: "/x/a.yaml", Line: 5, Text: `link to unknown node "x"; expected one of ctl, r`},
		{File: "/x/a.yaml", Line: 6, Text: `link to unknown node "y"; expected one of ctl, r`},
	}
	if status != 422 || !reflect.DeepEqual(f.Lines, want) {
		t.Errorf("%d %s", status, text)
	}
	for _, q := range []labapi.FileRequest{{Source: network, Name: "not-a-name"}, {Source: network, Plane: "steam"}} {
		if status, text := r.ask("POST", "/v1/check", q); status != 400 {
			t.Errorf("%+v: %d %s", q, status, text)
		}
	}
	var c labapi.Checked
	if r.get("POST", "/v1/check", labapi.FileRequest{Source: network, Name: "n", Plane: "openflow"}, &c); c != (labapi.Checked{Name: "n", Nodes: 4, Links: 2}) {
		t.Errorf("%+v", c)
	}
}

func TestOnlyTheTokenAdmits(t *testing.T) {
	r := serve(t, labapi.Config{Token: "correct horse", Dir: t.TempDir()})
	for shown, want := range map[string]int{"": 401, "Bearer": 401, "Bearer ": 401, "Bearer correct": 401, "Basic correct horse": 401, "Bearer correct horse": 200} {
		q := r.request(t.Context(), "GET", "/v1", nil)
		if shown != "" {
			q.Header.Set("Authorization", shown)
		}
		if status, text := r.send(q); status != want || strings.Contains(string(text), "correct horse") {
			t.Errorf("%q: %d %s, want %d", shown, status, text, want)
		}
	}
	if a, b := labapi.NewToken(), labapi.NewToken(); a == b || len(a) < 20 {
		t.Errorf("tokens %q and %q", a, b)
	}
}

func TestABodyHasALimit(t *testing.T) {
	r := serve(t, labapi.Config{})
	if status, text := r.ask("POST", "/v1/check", `{"source": "`+strings.Repeat("x", 64<<20)+`"}`); status != 413 {
		t.Errorf("%d %.200s", status, text)
	}
}

func TestWhatIsWrongInALabIsToldWithItsStatus(t *testing.T) {
	nstest.Root(t)
	r, name := up(t, "refuse")
	at := "/v1/labs/" + name
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/v1/labs/nolab", "", 404, "lab nolab: no lab is up"},
		{"GET", "/v1/labs/..%2fx", "", 404, "expected 1 to 20 of a-z"},
		{"DELETE", "/v1/labs/nolab", "", 404, "no lab is up"},
		{"POST", "/v1/labs/nolab/run", "", 404, "no lab is up"},
		{"POST", "/v1/labs", fmt.Sprintf(`{"source": %q, "name": %q}`, network, name), 409, "already up"},
		{"GET", at + "/links/c1/r1", "", 404, "no emulated link between"},
		{"PUT", at + "/links/c1/r1", `{"set": {"delay": "1ms"}}`, 404, "no emulated link between"},
		{"PUT", at + "/links/s1/r1", `{}`, 400, "nothing to set"},
		{"PUT", at + "/links/s1/r1", `{"set": {"delay": null}}`, 400, "expected text, a number or a boolean"},
		{"PUT", at + "/links/s1/r1", `{"set": {"delay": "1 ms"}}`, 400, "expected text, a number or a boolean"},
		{"PUT", at + "/links/s1/r1", `{"set": {"speed": "1"}}`, 400, `unknown parameter \"speed\"`},
		{"PUT", at + "/links/s1/r1", `{"set": {"jitter": "9ms"}}`, 400, "at most the delay"},
		{"POST", at + "/actions", `{"do": "destroy c1"}`, 400, "unknown action"},
		{"POST", at + "/actions", `{"do": "cut c1 c9"}`, 400, "no link between"},
		{"POST", at + "/actions", `{"do": "kill c1/nothing"}`, 400, "has no program"},
		{"POST", at + "/nodes/c9/exec", `{"argv": ["true"]}`, 404, "has no node"},
		{"POST", at + "/nodes/c1/exec", `{"argv": []}`, 400, "no command"},
		{"POST", at + "/nodes/c1/exec", `{"argv": ["no-such-program"], "stream": true}`, 404, "executable file not found"},
		{"POST", at + "/nodes/c1/exec", `{"argv": ["/etc/passwd"]}`, 400, "permission denied"},
		{"POST", at + "/nodes/c1/signal", `{"pid": 1}`, 404, "no command with the pid 1"},
		{"POST", at + "/nodes/c1/signal", `{"pid": 1, "signal": "LOUD"}`, 400, "expected a name such as TERM"},
		{"GET", at + "/nodes/c1/logs/..%2f..%2fstate.json", "", 404, "has no program"},
	} {
		status, text := r.ask(c.method, c.path, c.body)
		if status != c.status || !strings.Contains(string(text), c.says) {
			t.Errorf("%s %s %s: %d %s, want %d with %q", c.method, c.path, c.body, status, text, c.status, c.says)
		}
	}
}
